#!/usr/bin/env python3
"""Runs clang-tidy on all sources or on those that have changed, and reports each file as a case."""

import argparse
import concurrent.futures
import json
import os
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
CLANG_TIDY = "clang-tidy-19"
# Asio files take half a minute each; ./run-tests --lint is the run that takes its time.
CHANGED_FILES_MAX = 12
# What g++ takes and clang does not.
GCC_ONLY = {
    "-fcoroutines", "-Wlogical-op", "-Wduplicated-cond", "-Wduplicated-branches", "-Wuseless-cast"}


def git(*arguments):
    run = subprocess.run(
        ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    return run.stdout.strip() if run.returncode == 0 else None


def changed_files():
    """Names of files that differ from where the branch left origin/main, or from HEAD~1."""
    base = git("merge-base", "HEAD", "origin/main") or git("rev-parse", "HEAD~1")
    if base is None:
        return set()
    committed = git("diff", "--name-only", base) or ""
    new = git("ls-files", "--others", "--exclude-standard") or ""
    return set(committed.split("\n")) | set(new.split("\n"))


def clean_database(build):
    """Writes the compile commands without g++'s own flags; their folder, and our sources."""
    folder = build / "lint"
    folder.mkdir(exist_ok=True)
    entries = json.loads((build / "compile_commands.json").read_text(encoding="utf-8"))
    names = {}
    for entry in entries:
        words = [word for word in entry["command"].split(" ") if word not in GCC_ONLY]
        if pathlib.PurePath(words[0]).name == "ccache":
            words = words[1:]
        entry["command"] = " ".join(words)
        path = pathlib.Path(entry["directory"], entry["file"]).resolve()
        # What the build generates is not ours to lint.
        if path.is_relative_to(ROOT) and not path.is_relative_to(build) and path.suffix == ".cpp":
            names[str(path.relative_to(ROOT))] = path
    (folder / "compile_commands.json").write_text(json.dumps(entries), encoding="utf-8")
    return folder, names


def check(path, database):
    run = subprocess.run(
        [CLANG_TIDY, "--quiet", "-p", str(database),
         "--extra-arg=-Wno-unknown-warning-option", str(path)],
        cwd=ROOT, capture_output=True, text=True, check=False)
    return run.returncode, run.stdout + run.stderr


def write_results(cases):
    folder = os.environ.get("STAGGER_TEST_RESULTS")
    if folder:
        report = {"testsuites": [{"name": "clang_tidy", "testsuite": cases}]}
        pathlib.Path(folder, "lint.json").write_text(json.dumps(report), encoding="utf-8")


def choose(names, which):
    if which == "all":
        return sorted(names)
    chosen = sorted(changed_files() & set(names))
    if len(chosen) > CHANGED_FILES_MAX:
        print(f"lint: {len(chosen)} files have changed; {CHANGED_FILES_MAX} are checked now, "
              "all of them with --lint")
    return chosen[:CHANGED_FILES_MAX]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build"))
    parser.add_argument("--files", choices=["all", "changed"], default="changed")
    arguments = parser.parse_args()
    if shutil.which(CLANG_TIDY) is None:
        print(f"lint: {CLANG_TIDY} is not installed")
        write_results([{"name": "installed", "result": "SKIPPED"}])
        return 0
    database, names = clean_database((ROOT / arguments.build).resolve())
    chosen = choose(names, arguments.files)
    print(f"lint: clang-tidy on {len(chosen)} files")
    cases = []
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        reports = pool.map(lambda name: check(names[name], database), chosen)
        for name, (code, text) in zip(chosen, reports):
            if code != 0:
                print(f"lint: {name}\n{text}")
            failures = [{"failure": text}] if code != 0 else []
            cases.append({"name": name, "result": "COMPLETED", "failures": failures})
    write_results(cases)
    return 1 if any(case["failures"] for case in cases) else 0


if __name__ == "__main__":
    sys.exit(main())
