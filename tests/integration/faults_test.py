"""Processes that die, freeze, are stopped or start in any order, with real signals and real TCP."""

import itertools
import json
import pathlib
import signal
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import report
from stagger import (FAST, LIMIT, NO_LOSS, QUICK_LOSS, JobTest, LiveJob, processes_of, wait_until)

ENDLESS = {"job.iterations": 10000000}


class WorkerFaults(JobTest):
    def assert_others_finish(self, job, rank, reason):
        """Training ends without the rank, which the report names with where it was."""
        self.assert_ends(job.process, 0)
        ended = job.report()
        self.assertEqual([lost["rank"] for lost in ended["workers_lost"]], [rank])
        self.assertIn(reason, ended["workers_lost"][0]["reason"])
        self.assertLess(ended["workers_lost"][0]["last_iteration"], ended["iterations"])
        self.assertEqual(ended["iterations"], 2000)

    def test_the_others_finish_when_a_worker_is_killed(self):
        job = self.start_live("run", FAST | QUICK_LOSS | {"job.iterations": 2000})
        job.await_iteration(20)
        victim = job.pid_of(2)
        self.kill(victim, signal.SIGKILL)
        self.assert_others_finish(job, 2, "")
        self.assertIn("worker 2 ended with 137", job.process.err)
        self.assertIn("worker_gone rank=2", (job.directory / "ps.log").read_text())

    def test_a_killed_worker_that_is_started_again_rejoins(self):
        job = self.start_live("run", FAST | NO_LOSS | {"job.iterations": 2000})
        job.await_iteration(20)
        self.kill(job.pid_of(1), signal.SIGKILL)
        again = self.start_worker(job, 1)
        self.assert_ends(again, 0)
        self.assert_ends(job.process, 0)
        ended = job.report()
        self.assertEqual(ended["workers_lost"], [])
        self.assertEqual(ended["iterations"], 2000)

    def test_the_others_go_on_without_a_frozen_worker_and_it_is_told_when_it_thaws(self):
        job = self.start_live("run", FAST | QUICK_LOSS | {"job.iterations": 2000})
        job.await_iteration(20)
        frozen = job.pid_of(3)
        self.kill(frozen, signal.SIGSTOP)
        job.await_state(3, "gone")
        self.kill(frozen, signal.SIGCONT)
        self.assert_others_finish(job, 3, "silent")
        self.assertIn("worker 3 ended with 4: ", job.process.err)
        self.assertRegex(
            (job.directory / "worker-3.log").read_text(),
            # The PS's own words, or, where the connection broke before they were read, the
            # worker's, whichever end of the connection it notices first.
            f"stagger: PS {job.ps}: lost: .* 1.5 s .*start it again to rejoin")

    def test_a_worker_that_freezes_or_dies_with_turns_to_come_stops_nobody(self):
        for admission, number in (("grants", signal.SIGSTOP), ("slots+grants", signal.SIGKILL)):
            with self.subTest(admission=admission):
                job = self.start_live("run", FAST | QUICK_LOSS | {
                    "job.iterations": 2000, "slots.admission": admission, "slots.turn_limit_s": 0.2},
                    directory=f"runs-{admission}")
                job.await_iteration(20)
                self.kill(job.pid_of(1), number)
                job.await_state(1, "gone")
                if number == signal.SIGSTOP:
                    self.kill(job.pid_of(1), signal.SIGCONT)
                self.assert_others_finish(job, 1, "")
                self.assertLessEqual(job.report()["pushes_in_flight_max"], 1)

    def test_a_worker_that_is_told_to_end_says_farewell_and_the_others_finish(self):
        job = self.start_live("run", FAST | NO_LOSS | {"job.iterations": 2000})
        job.await_iteration(20)
        self.kill(job.pid_of(0), signal.SIGTERM)
        self.assert_ends(job.process, 0)
        self.assertEqual(job.report()["workers_lost"], [])
        self.assertEqual(job.report()["iterations"], 2000)
        log = (job.directory / "ps.log").read_text()
        self.assertRegex(log, r"worker_left rank=0 iteration=\d+ reason=signal")
        self.assertNotIn("ended with", job.process.err)

    def test_the_program_says_so_when_every_worker_is_lost_and_saves_the_center(self):
        job = self.start_live("run", FAST | QUICK_LOSS | ENDLESS)
        job.await_iteration(20)
        for rank in range(4):
            self.kill(job.pid_of(rank), signal.SIGKILL)
        self.assert_ends(job.process, 8)
        self.assertIn("every worker was lost", job.process.err)
        self.assertEqual([lost["rank"] for lost in job.report()["workers_lost"]], [0, 1, 2, 3])
        self.assertTrue((job.directory / "model.safetensors").exists())


class ServerFaults(JobTest):
    def test_workers_end_with_code_4_when_the_ps_is_killed(self):
        job = self.start_live("ps", FAST | QUICK_LOSS | ENDLESS | {"cluster.workers": 2})
        workers = [self.start_worker(job, rank) for rank in range(2)]
        job.await_iteration(20)
        job.process.signal(signal.SIGKILL)
        for worker in workers:
            self.assert_complains(worker, 4, f"PS {job.ps}", limit=10)

    def test_workers_end_with_code_4_when_the_ps_freezes(self):
        job = self.start_live("ps", FAST | QUICK_LOSS | ENDLESS | {"cluster.workers": 2})
        workers = [self.start_worker(job, rank) for rank in range(2)]
        job.await_iteration(20)
        job.process.signal(signal.SIGSTOP)
        for worker in workers:
            self.assert_complains(worker, 4, f"PS {job.ps}", limit=10)

    def test_a_run_ends_when_its_ps_is_killed(self):
        job = self.start_live("run", FAST | QUICK_LOSS | ENDLESS)
        job.await_iteration(20)
        self.kill(job.pid_of("ps"), signal.SIGKILL)
        code = job.process.wait(10)
        self.assertNotEqual(code, 0, job.process.describe())
        self.assertIn("the PS ended with 137", job.process.err)
        self.assertEqual(processes_of(self.folder), {})

    def test_no_child_survives_when_the_run_is_killed(self):
        job = self.start_live("run", FAST | ENDLESS)
        job.await_iteration(20)
        self.assertEqual(len(processes_of(self.folder)), 6)
        job.process.signal(signal.SIGKILL)
        job.process.wait()
        wait_until(lambda: not processes_of(self.folder), "the children of the run are gone", 5)


class Stopping(JobTest):
    def test_a_stopped_run_leaves_its_results(self):
        job = self.start_live("run", FAST | ENDLESS)
        job.await_iteration(20)
        job.process.signal(signal.SIGTERM)
        self.assert_ends(job.process, 0, 15)
        ended = job.report()
        self.assertEqual(ended["workers_lost"], [])
        self.assertGreaterEqual(ended["iterations"], 20)
        self.assertLess(ended["iterations"], 10_000_000)
        evaluation = self.launch("evaluate", job.directory / "config.toml", "--json")
        self.assert_ends(evaluation, 0)
        self.assertIn(ended["parameters_sha256"], evaluation.out)
        self.assertEqual(processes_of(self.folder), {})

    def test_a_second_signal_ends_a_run_at_once(self):
        job = self.start_live("run", FAST | ENDLESS)
        job.await_iteration(20)
        # A frozen worker keeps the PS from agreeing on a last iteration.
        self.kill(job.pid_of(1), signal.SIGSTOP)
        job.process.signal(signal.SIGTERM)
        wait_until(lambda: "signal number=15" in job.process.err, "the first signal is logged")
        job.process.signal(signal.SIGTERM)
        self.assert_ends(job.process, 130, 5)
        wait_until(lambda: not processes_of(self.folder), "the children of the run are gone", 5)

    def test_a_run_is_stopped_within_the_limit_although_a_worker_hangs(self):
        job = self.start_live("run", FAST | NO_LOSS | ENDLESS | {"timeouts.stop_s": 2})
        job.await_iteration(20)
        self.kill(job.pid_of(1), signal.SIGSTOP)
        job.process.signal(signal.SIGTERM)
        self.assert_ends(job.process, 0, 20)
        self.assertTrue((job.directory / "model.safetensors").exists())
        wait_until(lambda: not processes_of(self.folder), "no process of the run is left", 5)

    def test_a_run_that_waits_for_its_workers_can_be_stopped(self):
        process = self.start("ps", FAST)
        job = LiveJob(process, self.folder / "runs" / "quickstart")
        self.assertEqual(job.get("/readyz")[0], 503)
        process.signal(signal.SIGTERM)
        self.assert_ends(process, 0, 10)


class Joining(JobTest):
    def test_members_join_in_any_order(self):
        changes = FAST | NO_LOSS | {"cluster.workers": 2, "job.iterations": 20}
        hashes = set()
        for number, order in enumerate(itertools.permutations(["ps", 0, 1])):
            with self.subTest(order=order):
                changes["cluster.ps"] = f"127.0.0.1:{self.free_port()}"
                members = []
                for member in order:
                    if member == "ps":
                        members.append(self.start("ps", changes, directory=f"runs{number}"))
                    else:
                        members.append(self.start("worker", changes, "--rank", member))
                    time.sleep(0.1)
                for member in members:
                    self.assert_ends(member, 0)
                ended = self.folder / f"runs{number}" / "quickstart" / "report.json"
                hashes.add(json.loads(ended.read_text())["parameters_sha256"])
        self.assertEqual(len(hashes), 1)

    def test_workers_without_a_rank_are_given_one_and_ranks_come_from_the_environment(self):
        job = self.start_live("ps", FAST | NO_LOSS | {"cluster.workers": 3, "job.iterations": 20})
        config = job.directory / "config.toml"
        workers = [
            self.launch("worker", config, environment={"SLURM_PROCID": "2", "STAGGER_PS": job.ps}),
            self.launch("worker", config, "--ps", job.ps, environment={"STAGGER_RANK": "0"})]
        job.await_state(2, "joined")
        job.await_state(0, "joined")
        workers.append(self.launch("worker", config, "--ps", job.ps))
        for member in (*workers, job.process):
            self.assert_ends(member, 0)
        self.assertIn("joined rank=1", workers[2].err)

    def test_a_job_with_missing_members_ends_and_names_them(self):
        job = self.start_live("ps", FAST | {"cluster.workers": 3, "timeouts.join_s": 3})
        workers = [self.start_worker(job, rank) for rank in (0, 2)]
        self.assert_complains(job.process, 7, "worker/1", "timeouts.join_s", limit=LIMIT)
        for worker in workers:
            self.assertNotEqual(worker.wait(), 0)
            self.assertEqual(len(worker.complaints), 1, worker.describe())


if __name__ == "__main__":
    report.main()
