#!/usr/bin/env python3
"""Holds every file to the rules of rules.py, and every rule to its own examples.

    python3 tests/tidy/tidy.py                 all rules
    python3 tests/tidy/tidy.py --list FILE…    only the faults of these files, without the tests
"""

import pathlib
import re
import shutil
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "support"), str(ROOT / "tests" / "tidy")]

import cpp_text  # noqa: E402
import report  # noqa: E402
import rules  # noqa: E402

CODE_FOLDERS = ("observability", "kernels", "tensor", "net", "ps", "engine")
NOT_OURS = {".git", ".ccache", "runs", "__pycache__", "subprojects"}
CLANG_FORMAT = "clang-format-19"

# Decisions without waiting: none of these reaches Asio, not even through other headers of ours.
PURE = (
    "ps/grouping.hpp", "ps/ids.hpp", "ps/membership.hpp", "ps/plan.hpp", "ps/planner.hpp",
    "ps/policy.hpp", "ps/round.hpp", "ps/slots.hpp", "ps/stability.hpp", "kernels/elastic.hpp",
    "engine/config.hpp", "engine/learning_rate.hpp",
)


def all_files():
    """Paths from the root, of everything that is neither built nor fetched."""
    found = []
    for path in sorted(ROOT.rglob("*")):
        parts = path.relative_to(ROOT).parts
        if path.is_file() and not NOT_OURS & set(parts) and not parts[0].startswith("build"):
            found.append("/".join(parts))
    return found


def read(path):
    return (ROOT / path).read_text(encoding="utf-8", errors="replace")


def faults_of(path, text, rule):
    if not re.fullmatch(rule.files, path):
        return []
    return [f"{path}:{line}: {fault}" for line, fault in rule.check(path, text)]


class Rules(unittest.TestCase):
    """One test per rule for the files, one for the rule itself; made below."""

    files = {path: read(path) for path in all_files() if re.fullmatch(rules.TEXT, path)}

    @classmethod
    def add(cls, rule):
        def holds(self):
            found = [
                fault for path, text in self.files.items() for fault in faults_of(path, text, rule)]
            self.assertEqual(found, [], "\n" + "\n".join(found))

        def catches(self):
            self.assertTrue(rule.caught, "a rule needs an example that it catches")
            for path, text in rule.caught:
                found = faults_of(path, text, rule)
                self.assertNotEqual(found, [], f"not caught in {path}: {text}")
            for path, text in rule.allowed:
                self.assertEqual(faults_of(path, text, rule), [], f"caught in {path}: {text}")

        setattr(cls, f"test_{rule.name}", holds)
        setattr(cls, f"test_{rule.name}_proves_itself", catches)


for one in rules.RULES:
    Rules.add(one)


def reach(start, read_text, trail=()):
    """The trails of includes that lead from `start` to an Asio header."""
    for _, name in cpp_text.includes(cpp_text.code_of(read_text(start))):
        here = (*trail, start)
        if name.startswith("boost/asio/"):
            yield (*here, name)
        elif name.split("/")[0] in CODE_FOLDERS and name not in here and name.endswith(".hpp"):
            yield from reach(name, read_text, here)


class Purity(unittest.TestCase):
    def test_decisions_do_not_reach_asio(self):
        for path in PURE:
            with self.subTest(path):
                self.assertEqual([" -> ".join(trail) for trail in reach(path, read)], [])

    def test_the_search_follows_our_own_headers(self):
        world = {
            "ps/a.hpp": '#include "net/b.hpp"\n',
            "net/b.hpp": "#include <boost/asio/post.hpp>\n"}
        self.assertEqual(
            list(reach("ps/a.hpp", world.get)), [("ps/a.hpp", "net/b.hpp", "boost/asio/post.hpp")])


def unbuilt(sources, descriptions):
    """Sources that no meson.build of their folder, or of a folder above it, names."""
    for source in sources:
        folder, _, _ = source.rpartition("/")
        names = []
        while folder:
            prefix = folder + "/"
            names.append((prefix + "meson.build", source.removeprefix(prefix)))
            folder = folder.rpartition("/")[0]
        if not any(name in descriptions.get(path, "") for path, name in names):
            yield source


class Project(unittest.TestCase):
    files = all_files()

    def test_every_folder_has_a_readme(self):
        for folder in (*CODE_FOLDERS, "tests", "configs"):
            with self.subTest(folder):
                self.assertIn(f"{folder}/README.md", self.files)
        self.assertIn("README.md", self.files)

    def test_there_is_a_license(self):
        self.assertIn("Apache License", read("LICENSE"))

    def test_every_source_is_built(self):
        sources = [path for path in self.files if path.endswith(".cpp")]
        descriptions = {path: read(path) for path in self.files if path.endswith("meson.build")}
        self.assertEqual(list(unbuilt(sources, descriptions)), [])

    def test_a_source_that_is_not_built_is_found(self):
        descriptions = {"net/meson.build": "files('a.cpp', 'real/b.cpp')"}
        sources = ["net/a.cpp", "net/real/b.cpp", "net/c.cpp", "net/sim/b.cpp"]
        self.assertEqual(list(unbuilt(sources, descriptions)), ["net/c.cpp", "net/sim/b.cpp"])


@unittest.skipIf(shutil.which(CLANG_FORMAT) is None, f"{CLANG_FORMAT} is not installed")
class Format(unittest.TestCase):
    def run_on(self, *arguments, text=None):
        return subprocess.run(
            [CLANG_FORMAT, "--dry-run", "-Werror", "--ferror-limit=1", *arguments],
            cwd=ROOT, input=text, capture_output=True, text=True, check=False)

    def test_sources_are_formatted(self):
        sources = [path for path in all_files() if path.endswith((".hpp", ".cpp"))]
        done = self.run_on(*sources)
        faulty = sorted(set(re.findall(r"^([\w/.]+):\d+:\d+: error", done.stderr, re.MULTILINE)))
        self.assertEqual(faulty, [], f"run {CLANG_FORMAT} -i on them")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_source_that_is_not_formatted_is_found(self):
        bad = self.run_on("--assume-filename=ps/a.cpp", text="int   x ;\n")
        good = self.run_on("--assume-filename=ps/a.cpp", text="int x;\n")
        self.assertNotEqual(bad.returncode, 0)
        self.assertEqual(good.returncode, 0, good.stderr)


def list_faults(paths):
    found = [
        fault for path in paths for rule in rules.RULES
        for fault in faults_of(path, read(path), rule)]
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--list"]:
        sys.exit(list_faults(sys.argv[2:] or all_files()))
    report.main()
