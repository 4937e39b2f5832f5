"""The same seed gives the same parameters: over TCP, in the simulator, in every admission mode."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import report
from stagger import FAST, JobTest


WALL = ("wall_seconds", "wall_us_per_chunk")  # what a simulation took is no part of the simulated world


class Determinism(JobTest):
    def simulated(self, changes, *words):
        report_of_run = self.report_of("simulate", changes, "--train", *words)
        return {key: value for key, value in report_of_run.items() if key not in WALL}

    def hash_over_tcp(self, changes=None, directory="runs"):
        return self.report_of("run", changes, directory=directory)["parameters_sha256"]

    def test_a_seed_gives_the_same_parameters_over_tcp_whatever_the_order_of_arrival(self):
        # Chunks of 4 KiB and room for two of them: the PS stops reading from workers that come too early.
        tight = {"wire.chunk_bytes": 4096, "wire.early_bytes_max": 8192}
        variants = {
            "slots": {"slots.admission": "slots"},
            "slots again": {"slots.admission": "slots"},
            "none": {"slots.admission": "none"},
            "none again": {"slots.admission": "none"},
            "none, small chunks": {"slots.admission": "none"} | tight,
            "slots, small chunks": {"slots.admission": "slots"} | tight,
        }
        hashes = {name: self.hash_over_tcp(changes, directory=name.replace(" ", "-"))
                  for name, changes in variants.items()}
        self.assertEqual(len(set(hashes.values())), 1, hashes)

    def test_the_simulator_gives_the_parameters_of_tcp_and_the_same_trace_twice(self):
        over_tcp = self.report_of("run", FAST)
        first = self.simulated(FAST)
        second = self.simulated(FAST)
        other_world = self.simulated(FAST, "--seed", 2)
        self.assertEqual(first["parameters_sha256"], over_tcp["parameters_sha256"])
        self.assertEqual(first["bytes_pushed"], over_tcp["bytes_pushed"])
        self.assertEqual(first["bytes_pulled"], over_tcp["bytes_pulled"])
        self.assertEqual(first["test_accuracy"], over_tcp["test_accuracy"])
        self.assertEqual(first, second)
        self.assertNotEqual(other_world["trace_hash"], first["trace_hash"])
        self.assertEqual(other_world["parameters_sha256"], first["parameters_sha256"])

    def test_another_seed_of_the_job_gives_other_parameters(self):
        hashes = {self.simulated(FAST | {"job.seed": seed})["parameters_sha256"]
                  for seed in (1, 2, 3)}
        self.assertEqual(len(hashes), 3)

    def test_every_strategy_and_rule_gives_the_same_parameters_over_tcp_and_in_the_simulator(self):
        variants = [{"sync.strategy": strategy, "sync.rule": rule}
                    for strategy in ("interleaved", "easgd")
                    for rule in ("old_center", "fresh_center", "post_step")]
        variants += [{"sync.strategy": "local_sgd"}, {"sync.strategy": "diloco"},
                     {"sync.strategy": "bsp", "sync.period": 1}]
        hashes = set()
        for changes in variants:
            with self.subTest(**changes):
                changes = FAST | {"optimizer.warmup_iterations": 0} | changes
                directory = "-".join(str(value) for key, value in changes.items() if key.startswith("sync"))
                simulated = self.simulated(changes)["parameters_sha256"]
                self.assertEqual(self.hash_over_tcp(changes, directory), simulated)
                hashes.add(simulated)
        self.assertEqual(len(hashes), len(variants), "strategies and rules differ in what they do")


if __name__ == "__main__":
    report.main()
