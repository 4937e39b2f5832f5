"""Slots that count from the PS's clock, over TCP: all roles are on one machine, so the true offset is 0."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import report
from stagger import FAST, JobTest, wait_until

SHARED = FAST | {"slots.admission": "slots", "slots.clock": "shared", "timeouts.heartbeat_s": 0.05}


class SharedClock(JobTest):
    def test_a_run_ends_with_the_parameters_of_local_slots_and_says_how_well_clocks_were_known(self):
        shared = self.report_of("run", SHARED | {"job.iterations": 200}, directory="shared")
        local = self.report_of("run", FAST | {"job.iterations": 200}, directory="local")
        self.assertEqual(shared["parameters_sha256"], local["parameters_sha256"])
        self.assertEqual(shared["bytes_pushed"], local["bytes_pushed"])
        self.assertEqual(shared["rounds"], local["rounds"])
        self.assertGreater(shared["clock_uncertainty_us"], 0)

    def test_every_workers_offset_is_there_and_true_within_its_uncertainty(self):
        job = self.start_live("run", SHARED | {"job.iterations": 10_000_000})
        job.await_iteration(50)
        uncertainties = wait_until(
            lambda: (lambda u: u if len(u) == 4 else None)(
                job.scrape().get("stagger_clock_uncertainty_seconds", {})),
            "all clocks are known")
        self.assertTrue(all(value > 0 for value in uncertainties.values()), uncertainties)
        scrape = job.scrape()
        for labels, offset in scrape["stagger_clock_offset_seconds"].items():
            self.assertLessEqual(abs(offset), scrape["stagger_clock_uncertainty_seconds"][labels])

    def test_a_worker_that_comes_back_learns_the_clock_again(self):
        job = self.start_live("run", SHARED | {"job.iterations": 10_000_000, "timeouts.worker_s": 3})
        job.await_iteration(20)
        self.kill(job.pid_of(1), 9)
        job.await_state(1, "gone")
        self.start_worker(job, 1)
        job.await_state(1, "active")
        wait_until(
            lambda: 'rank="1"' in job.scrape().get("stagger_clock_offset_seconds", {}),
            "the clock of rank 1 is known")


if __name__ == "__main__":
    report.main()
