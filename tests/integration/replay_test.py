"""Replayed profiles over TCP: equal parameters, mistakes in one line, and the command that makes profiles."""

import json
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import report
from stagger import SOURCE, JobTest, LIMIT

REPLAY = SOURCE / "configs" / "replay.toml"
USAGE, DATA, STORAGE = 2, 3, 9
SHORT = {"job.iterations": 6, "backend.bytes_scale": 0.002, "backend.time_scale": 0.02, "cluster.workers": 3,
         "slots.profile_iterations": 1}


class Replay(JobTest):
    def replay(self, command, changes=None, *words, config=REPLAY):
        settings = SHORT | {"job.directory": self.folder / "runs"} | (changes or {})
        sets = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
        return self.launch(command, config, *sets, *words)

    def replay_report(self, command, changes=None):
        process = self.replay(command, changes, "--json")
        self.assert_ends(process, 0, 2 * LIMIT)
        return json.loads(process.out)

    def test_parameters_are_equal_with_every_admission_and_in_the_simulator(self):
        reference = self.replay_report("simulate")
        self.assertIsNone(reference["test_accuracy"])
        for admission in ("none", "slots", "grants", "slots+grants"):
            with self.subTest(admission=admission):
                run = self.replay_report("run", {"slots.admission": admission})
                self.assertEqual(run["parameters_sha256"], reference["parameters_sha256"])
                self.assertEqual(run["iterations"], 6)

    def test_a_report_has_neither_loss_nor_accuracy(self):
        process = self.replay("run")
        self.assert_ends(process, 0)
        self.assertNotIn("accuracy", process.out)
        self.assertNotIn("loss", process.out)
        self.assertIn("sha256", process.out)
        written = json.loads((self.folder / "runs" / "replay" / "report.json").read_text())
        for key in ("train_loss", "test_accuracy", "test_loss"):
            self.assertIsNone(written[key], key)

    def test_compute_takes_the_profiles_time_without_a_processor(self):
        run = self.replay_report("run", {"backend.time_scale": 0.1, "cluster.workers": 2})
        profile = [line.split(",") for line in
                   (SOURCE / "configs" / "profiles" / "resnet50.csv").read_text().splitlines()[1:]]
        nominal = 0.1e-6 * sum(float(row[3]) + float(row[4]) for row in profile)
        self.assertGreater(run["compute_seconds"], 0.95 * 2 * 6 * nominal)

    def test_a_plan_needs_no_measuring_and_no_data(self):
        process = self.replay("plan", {}, "--json")
        self.assert_ends(process, 0)
        again = self.replay("plan", {}, "--json")
        self.assert_ends(again, 0)
        self.assertEqual(process.out, again.out)
        self.assertIn("layer4.2.conv3", process.out)

    def test_a_shipped_profile_is_a_profile_for_plan_too(self):
        process = self.start("plan", {}, "--profile", "vgg16")
        self.assert_ends(process, 0)
        self.assertIn("fc8", process.out)

    def test_mistakes_are_one_line(self):
        wrong = self.folder / "wrong.csv"
        wrong.write_text("a,10,40,1,-2\n")
        table = [
            (DATA, {"backend.profile": "resnet51"}, ["resnet51", "bert_base, gpt2_small, resnet50, vgg16"]),
            (DATA, {"backend.profile": self.folder / "missing.csv"}, ["missing.csv", "no such file"]),
            (DATA, {"backend.profile": wrong}, ["wrong.csv:1:11", "negative"]),
            (DATA, {"backend.bytes_scale": 1000}, ["resnet50", "backend.bytes_scale"]),
            (USAGE, {"backend.profile": '""'}, ["backend.profile: missing", "resnet50"]),
            (USAGE, {"job.iterations": 0}, ["job.iterations"]),
        ]
        for code, changes, fragments in table:
            for command in ("run", "simulate", "plan"):
                with self.subTest(command=command, **{key: str(value) for key, value in changes.items()}):
                    self.assert_complains(self.replay(command, changes), code, *fragments)
        self.assertFalse((self.folder / "runs").exists())

    def test_there_is_nothing_to_evaluate(self):
        self.assert_complains(self.replay("evaluate"), USAGE, "nothing to evaluate", REPLAY)

    def test_a_measured_profile_is_replayed_and_planned_by(self):
        csv = self.folder / "lenet.csv"
        measured = self.start("profile", {"slots.profile_iterations": 1}, "--out", csv)
        self.assert_ends(measured, 0)
        self.assertIn("12 layers, 246824 bytes", measured.out)
        plan = self.start("plan", {}, "--profile", csv)
        self.assert_ends(plan, 0)
        self.assertIn("conv1", plan.out)
        printed = self.replay("profile", {"backend.profile": csv, "backend.bytes_scale": 1, "backend.time_scale": 1})
        self.assert_ends(printed, 0)
        self.assertEqual(printed.out, csv.read_text())
        run = self.replay_report("run", {"backend.profile": csv, "backend.bytes_scale": 1})
        self.assertEqual(run["iterations"], 6)

    def test_a_profile_that_cannot_be_written_is_named(self):
        process = self.replay("profile", {}, "--out", "/proc/stagger/p.csv")
        self.assert_complains(process, STORAGE, "/proc/stagger")


if __name__ == "__main__":
    report.main()
