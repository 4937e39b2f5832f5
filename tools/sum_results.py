#!/usr/bin/env python3
"""Adds up what the tests have left behind and prints the closing line of ./run-tests.

Two sources, so that nothing is lost: one JSON file per test program with each of its cases
(tests/README.md says how they look), and Meson's own log, which also knows the programs that
crashed, ran out of time or wrote no file.
"""

import argparse
import json
import pathlib
import sys
from dataclasses import dataclass, field


@dataclass
class Tally:
    passed: int = 0
    skipped: int = 0
    failures: list = field(default_factory=list)

    def line(self):
        text = f"{self.passed} passed, {len(self.failures)} failed"
        return f"{text}, {self.skipped} skipped" if self.skipped else text

    def exit_code(self):
        return 0 if self.passed > 0 and not self.failures else 1


def add_case(tally, program, suite, case):
    name = f"{program}: {suite}.{case['name']}"
    if case.get("failures"):
        tally.failures.append(name)
    elif case.get("status") == "NOTRUN" or case.get("result") in ("SKIPPED", "SUPPRESSED"):
        tally.skipped += 1
    else:
        tally.passed += 1


def add_file(tally, path):
    """Adds one result file; the number of failures in it."""
    before = len(tally.failures)
    try:
        suites = json.loads(path.read_text(encoding="utf-8", errors="replace"))["testsuites"]
        for suite in suites:
            for case in suite["testsuite"]:
                add_case(tally, path.stem, suite["name"], case)
    except (OSError, ValueError, KeyError, TypeError) as error:
        tally.failures.append(f"{path.stem}: its result file cannot be read ({error})")
    return len(tally.failures) - before


def stems(command):
    return {pathlib.PurePath(word).stem for word in command}


def add_program(tally, entry, failures_by_stem, filtered):
    """Adds one line of Meson's log, for what the result files do not tell."""
    result = entry["result"]
    known = [failures_by_stem[stem] for stem in stems(entry["command"]) if stem in failures_by_stem]
    if result in ("OK", "EXPECTEDFAIL"):
        if not known and not filtered:
            tally.passed += 1
    elif result == "SKIP":
        if not known:
            tally.skipped += 1
    elif not any(known):
        tally.failures.append(f"{entry['name']}: {result}, exit code {entry.get('returncode')}")


def sum_up(results, log_lines, filtered):
    tally = Tally()
    failures_by_stem = {}
    for path in sorted(results.glob("*.json")):
        failures_by_stem[path.stem] = add_file(tally, path)
    for line in log_lines:
        if line.strip():
            add_program(tally, json.loads(line), failures_by_stem, filtered)
    return tally


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--results", type=pathlib.Path, required=True)
    parser.add_argument("--log", type=pathlib.Path, required=True)
    parser.add_argument("--filter", default="")
    arguments = parser.parse_args()
    if arguments.log.exists():
        lines = arguments.log.read_text(encoding="utf-8", errors="replace").splitlines()
        tally = sum_up(arguments.results, lines, bool(arguments.filter))
    else:
        tally = sum_up(arguments.results, [], bool(arguments.filter))
        tally.failures.append("meson test: it has left no log")
    for failure in tally.failures:
        print(f"FAILED {failure}")
    print(tally.line())
    return tally.exit_code()


if __name__ == "__main__":
    sys.exit(main())
