#!/usr/bin/env python3
"""The tools of ./run-tests: what fails, crashes, hangs or runs nothing never looks like success."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "support"), str(ROOT / "tools")]

import report  # noqa: E402
import sum_results  # noqa: E402


def case(name, failed=False, result="COMPLETED", status="RUN"):
    failures = [{"failure": "no"}] if failed else []
    return {"name": name, "status": status, "result": result, "failures": failures}


def program(name, result="OK", command=None):
    return json.dumps({"name": name, "result": result, "returncode": 0 if result == "OK" else -6,
                       "command": command or [f"/build/tests/{name}"]})


class SumResults(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.results = pathlib.Path(folder.name)

    def write(self, name, *cases):
        suites = {"testsuites": [{"name": "Suite", "testsuite": list(cases)}]}
        (self.results / f"{name}.json").write_text(json.dumps(suites))

    def sum_up(self, *lines, filtered=False):
        return sum_results.sum_up(self.results, lines, filtered)

    def test_counts_every_case_of_every_program(self):
        self.write("a_test", case("one"), case("two", failed=True))
        self.write("b_test", case("three"), case("four", result="SKIPPED"))
        tally = self.sum_up(program("a_test", "FAIL"), program("b_test"))
        self.assertEqual(tally.line(), "2 passed, 1 failed, 1 skipped")
        self.assertEqual(tally.exit_code(), 1)

    def test_all_passed_is_success(self):
        self.write("a_test", case("one"))
        tally = self.sum_up(program("a_test"))
        self.assertEqual(tally.line(), "1 passed, 0 failed")
        self.assertEqual(tally.exit_code(), 0)

    def test_a_disabled_case_is_not_passed(self):
        self.write("a_test", case("one"), case("DISABLED_two", status="NOTRUN"))
        self.assertEqual(self.sum_up(program("a_test")).line(), "1 passed, 0 failed, 1 skipped")

    def test_a_crash_without_a_file_is_a_failure(self):
        self.write("a_test", case("one"))
        tally = self.sum_up(program("a_test"), program("b_test", "FAIL"))
        self.assertEqual(tally.line(), "1 passed, 1 failed")
        self.assertEqual(tally.exit_code(), 1)

    def test_a_program_that_ran_out_of_time_is_a_failure(self):
        self.assertEqual(self.sum_up(program("a_test", "TIMEOUT")).line(), "0 passed, 1 failed")

    def test_a_crash_after_all_cases_have_passed_is_a_failure(self):
        self.write("a_test", case("one"))
        self.assertEqual(self.sum_up(program("a_test", "FAIL")).line(), "1 passed, 1 failed")

    def test_a_failed_case_is_counted_once(self):
        self.write("a_test", case("one", failed=True))
        self.assertEqual(self.sum_up(program("a_test", "FAIL")).line(), "0 passed, 1 failed")

    def test_a_torn_result_file_is_a_failure(self):
        (self.results / "a_test.json").write_text('{"testsuites": [')
        self.assertEqual(self.sum_up(program("a_test")).line(), "0 passed, 1 failed")

    def test_a_plain_program_counts_by_its_exit_code(self):
        self.assertEqual(self.sum_up(program("plain")).line(), "1 passed, 0 failed")
        self.assertEqual(
            self.sum_up(program("plain", "SKIP")).line(), "0 passed, 0 failed, 1 skipped")

    def test_a_script_is_known_by_its_name(self):
        self.write("tidy", case("one"))
        line = program("tidy", "OK", ["/usr/bin/python3", "/src/tests/tidy/tidy.py"])
        self.assertEqual(self.sum_up(line).line(), "1 passed, 0 failed")

    def test_nothing_ran_is_no_success(self):
        self.assertEqual(self.sum_up().exit_code(), 1)
        self.assertEqual(self.sum_up(program("plain"), filtered=True).exit_code(), 1)


class Report(unittest.TestCase):
    SCRIPT = (
        "import sys, unittest\n"
        f"sys.path.insert(0, {str(ROOT / 'tests' / 'support')!r})\n"
        "import report\n"
        "class Sample(unittest.TestCase):\n"
        "    def test_good(self): pass\n"
        "    def test_bad(self): self.fail('no')\n"
        "    def test_error(self): raise ValueError('no')\n"
        "    def test_skipped(self): self.skipTest('why')\n"
        "    def test_parts(self):\n"
        "        for part in range(3):\n"
        "            with self.subTest(part=part): self.assertLess(part, 1)\n"
        "report.main()\n")

    def run_script(self, **environment):
        with tempfile.TemporaryDirectory() as folder:
            script = pathlib.Path(folder, "sample.py")
            script.write_text(self.SCRIPT)
            done = subprocess.run(
                [sys.executable, str(script)], capture_output=True, check=False,
                env={**os.environ, "STAGGER_TEST_FILTER": "", **environment,
                     "STAGGER_TEST_RESULTS": folder})
            tally = sum_results.sum_up(pathlib.Path(folder), [], False)
            return done.returncode, tally

    def test_every_outcome_reaches_the_sum(self):
        code, tally = self.run_script()
        self.assertEqual(code, 1)
        self.assertEqual(tally.line(), "1 passed, 3 failed, 1 skipped")

    def test_the_filter_chooses_by_text(self):
        code, tally = self.run_script(STAGGER_TEST_FILTER="test_good")
        self.assertEqual(code, 0)
        self.assertEqual(tally.line(), "1 passed, 0 failed")


class Packages(unittest.TestCase):
    def test_each_line_has_a_package_a_known_group_and_a_reason(self):
        for line in (ROOT / "tools" / "packages.txt").read_text().splitlines():
            if line and not line.startswith("#"):
                words = line.split()
                self.assertGreater(len(words), 2, line)
                self.assertIn(words[1], ("build", "test", "ci"), line)


if __name__ == "__main__":
    report.main()
