"""Data parallelism changes nothing: K workers of batch B are one worker of batch K*B."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import report
from stagger import FAST, JobTest, read_safetensors

BSP = {"sync.strategy": "bsp", "sync.period": 1, "optimizer.warmup_iterations": 0}
FOUR = {"cluster.workers": 4, "data.batch": 32}
ONE = {"cluster.workers": 1, "data.batch": 128}


class Equivalence(JobTest):
    def train(self, name, changes):
        """The report and the parameters of a run."""
        ended = self.report_of("run", changes, directory=name)
        return ended, read_safetensors(self.folder / name / "quickstart" / "model.safetensors")

    def assert_close(self, ours, theirs, tolerance):
        """Each tensor, relative to its largest value."""
        self.assertEqual(list(ours), list(theirs))
        for name, values in ours.items():
            others = theirs[name]
            self.assertEqual(len(values), len(others))
            largest = max(abs(value) for value in values)
            worst = max(abs(a - b) for a, b in zip(values, others))
            self.assertLessEqual(worst, tolerance * largest, f"{name}: {worst} of {largest}")

    def test_one_step_of_four_workers_is_one_step_of_one_worker_with_the_whole_batch(self):
        for model in ({}, FAST | {"data.batch": 32}):
            with self.subTest(**model):
                name = model.get("model.name", "lenet5")
                step = BSP | model | {
                    "job.iterations": 1, "optimizer.lr": 0.5, "optimizer.schedule": "constant"}
                _, four = self.train(f"{name}-four", step | FOUR)
                _, one = self.train(f"{name}-one", step | ONE)
                _, before = self.train(f"{name}-before", step | ONE | {"optimizer.lr": 1e-12})
                self.assert_close(four, one, 1e-6)
                with self.assertRaises(AssertionError, msg="the step is too small to test anything"):
                    self.assert_close(four, before, 1e-3)

    def test_after_200_steps_the_losses_agree_within_a_hundredth(self):
        steps = BSP | {"job.iterations": 200}
        four, _ = self.train("four", steps | FOUR)
        one, _ = self.train("one", steps | ONE)
        for key in ("train_loss", "test_loss"):
            self.assertAlmostEqual(four[key] / one[key], 1.0, delta=1e-2, msg=key)
        self.assertEqual(four["samples"], one["samples"])
        self.assertLess(four["test_loss"], 1.0, "200 steps learn something")


class OneWorker(JobTest):
    def test_local_sgd_of_one_worker_is_plain_training(self):
        alone = FAST | {"cluster.workers": 1, "job.iterations": 20, "data.batch": 32}
        plain = self.report_of("run", alone | BSP, directory="bsp")
        local = self.report_of(
            "run", alone | BSP | {"sync.strategy": "local_sgd"}, directory="local")
        self.assertAlmostEqual(local["test_loss"], plain["test_loss"], places=5)
        self.assertAlmostEqual(local["train_loss"], plain["train_loss"], places=5)

    def test_every_strategy_works_with_one_worker(self):
        for strategy in ("interleaved", "easgd", "local_sgd"):
            for period in (1, 3):
                with self.subTest(strategy=strategy, period=period):
                    ended = self.report_of("run", FAST | {
                        "cluster.workers": 1, "sync.strategy": strategy, "sync.period": period,
                        "data.batch": 64, "job.iterations": 150, "optimizer.warmup_iterations": 0,
                        }, directory=f"{strategy}-{period}")
                    self.assertEqual(ended["iterations"], 150)
                    self.assertGreater(ended["test_accuracy"], 0.5)


if __name__ == "__main__":
    report.main()
