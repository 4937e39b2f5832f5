"""`stagger simulate`: a port that loses segments, pictures of an iteration, real arithmetic on request."""

import json
import pathlib
import sys
import unittest
import xml.etree.ElementTree

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import report
from stagger import FAST, SOURCE, JobTest, LIMIT

REPLAY = SOURCE / "configs" / "replay.toml"
USAGE = 2
SHALLOW = ("--workers", 8, "--bandwidth", "200mbit", "--worker-bandwidth", "10gbit", "--latency", "10us",
           "--buffer", "64KiB")


class Simulate(JobTest):
    def simulate(self, *words, admission="none"):
        process = self.launch("simulate", REPLAY, "--set", "job.iterations=9", "--set", "backend.bytes_scale=0.008",
                              "--set", f"slots.admission={admission}", "--set", "wire.window_bytes=32768", *words)
        self.assertEqual(process.wait(2 * LIMIT), 0, process.describe())
        return process.out

    def figures(self, *words, admission="none"):
        return json.loads(self.simulate("--json", *words, admission=admission))

    def test_turns_keep_a_shallow_port_from_losing_what_eight_workers_at_once_overflow_it_with(self):
        at_once = self.figures(*SHALLOW)
        in_turn = self.figures(*SHALLOW, admission="grants")
        self.assertGreater(at_once["port"]["drops"], 100)
        self.assertLess(in_turn["port"]["drops"], at_once["port"]["drops"] / 20)
        self.assertEqual(in_turn["pushes_in_flight_max"], 1)
        self.assertGreater(at_once["pushes_in_flight_max"], 4)
        self.assertGreaterEqual(at_once["port"]["retransmissions"], at_once["port"]["drops"] // 2)
        self.assertEqual(at_once["parameters_sha256"], in_turn["parameters_sha256"])

    def test_the_same_seed_gives_the_same_losses(self):
        worlds = [self.figures(*SHALLOW, "--seed", seed) for seed in (3, 3, 4)]
        for world in worlds:
            del world["wall_seconds"], world["wall_us_per_chunk"]
        self.assertEqual(worlds[0], worlds[1])
        self.assertNotEqual(worlds[0]["trace_hash"], worlds[2]["trace_hash"])

    def test_an_iteration_is_drawn_and_written(self):
        svg = self.folder / "iteration.svg"
        text = self.simulate(*SHALLOW, "--picture", 4, "--svg", svg)
        self.assertIn("iteration 4, ", text)
        self.assertIn("FFFF", text)
        self.assertIn("####", text)
        root = xml.etree.ElementTree.parse(svg).getroot()
        words = [node.text for node in root.iter("{http://www.w3.org/2000/svg}text")]
        for rank in range(8):
            self.assertIn(f"worker {rank}", words)

    def test_training_gives_accuracy_against_virtual_time(self):
        trained = self.report_of("simulate", FAST, "--train", "--evaluate-every", 10)
        curve = trained["curve"]
        self.assertGreaterEqual(len(curve), 2)
        for earlier, later in zip(curve, curve[1:]):
            self.assertLess(earlier["virtual_seconds"], later["virtual_seconds"])
            self.assertLess(earlier["iteration"], later["iteration"])
        self.assertGreater(trained["test_accuracy"], 0.1)

    def test_without_training_the_models_layers_take_their_times_and_nothing_is_learnt(self):
        replayed = self.report_of("simulate", FAST)
        self.assertIsNone(replayed["test_accuracy"])
        self.assertGreater(replayed["virtual_seconds"], 0)

    def test_mistakes_are_one_line(self):
        for words, fragment in (
                (("--bandwidth", "fast"), "--bandwidth fast"),
                (("--workers", 100000), "--workers 100000"),
                (("--buffer", "0"), "--buffer 0"),
                (("--picture", 10), "the run ends with iteration 9"),
                (("--svg", "x.svg"), "--picture"),
                (("--evaluate-every", 3), "--train"),
                (("--train",), "--train")):
            with self.subTest(words=words):
                process = self.launch("simulate", REPLAY, "--set", "job.iterations=9", *words)
                self.assert_complains(process, USAGE, fragment)


if __name__ == "__main__":
    report.main()
