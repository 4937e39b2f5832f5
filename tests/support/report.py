"""Runs the unittest cases of a script and reports them the way GoogleTest does.

    import report                      # with tests/support on sys.path
    if __name__ == "__main__":
        report.main()

With STAGGER_TEST_RESULTS set, each case ends up in $STAGGER_TEST_RESULTS/<script>.json, where
./run-tests counts it.
With STAGGER_TEST_FILTER set, only cases whose name contains that text run.
"""

import json
import os
import pathlib
import sys
import unittest


class RecordingResult(unittest.TextTestResult):
    """Remembers every case with its outcome; a case with failing subtests is one failure."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.cases = {}

    def _case(self, test):
        test = getattr(test, "test_case", test)  # a subtest belongs to its case
        suite, _, name = test.id().rpartition(".")
        key = (suite.removeprefix("__main__.") or "unittest", name)
        return self.cases.setdefault(
            key, {"name": name, "status": "RUN", "result": "COMPLETED", "failures": []})

    def startTest(self, test):
        super().startTest(test)
        self._case(test)

    def _fail(self, test, error):
        self._case(test)["failures"].append({"failure": self._exc_info_to_string(error, test)})

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self._fail(test, err)

    def addError(self, test, err):
        super().addError(test, err)
        self._fail(test, err)

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            self._fail(test, err)

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self._case(test)["result"] = "SKIPPED"

    def addUnexpectedSuccess(self, test):
        super().addUnexpectedSuccess(test)
        self._case(test)["failures"].append({"failure": "succeeded unexpectedly"})


def _flatten(suite):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from _flatten(test)
        else:
            yield test


def _write(cases, name):
    folder = os.environ.get("STAGGER_TEST_RESULTS")
    if not folder:
        return
    suites = {}
    for (suite, _), case in cases.items():
        suites.setdefault(suite, []).append(case)
    report = {
        "name": name,
        "testsuites": [{"name": suite, "testsuite": found} for suite, found in suites.items()],
    }
    pathlib.Path(folder, name + ".json").write_text(json.dumps(report, indent=1), encoding="utf-8")


def run(module, name):
    """Runs the cases of a module; True when none failed."""
    tests = list(_flatten(unittest.defaultTestLoader.loadTestsFromModule(module)))
    wanted = os.environ.get("STAGGER_TEST_FILTER", "")
    suite = unittest.TestSuite(test for test in tests if wanted in test.id())
    result = unittest.TextTestRunner(verbosity=2, resultclass=RecordingResult).run(suite)
    _write(result.cases, name)
    return result.wasSuccessful()


def main():
    name = pathlib.Path(sys.argv[0]).stem
    sys.exit(0 if run(sys.modules["__main__"], name) else 1)
