"""PUT /v1/period in a running job: who agrees, when it takes effect, and what is refused."""

import concurrent.futures
import json
import pathlib
import signal
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import report
from stagger import FAST, JobTest, due, http

# Iterations that take longer than the time between two heartbeats, so that the status is up to date. The
# tests end the run, so that no machine is too fast for them.
SLOW = {"cluster.workers": 2, "data.batch": 128, "job.iterations": 10_000_000, "timeouts.heartbeat_s": 0.01}


class Period(JobTest):
    def put(self, job, body, method="PUT"):
        body = body if isinstance(body, str) else json.dumps(body)
        return http(job.endpoints["http"], "/v1/period", method, body)

    def assert_problem(self, answer, *codes):
        status, headers, text = answer
        self.assertIn(status, codes, text)
        self.assertEqual(headers["Content-Type"], "application/problem+json")
        self.assertEqual(json.loads(text)["status"], status)
        self.assertTrue(json.loads(text)["detail"])

    def assert_rounds_follow_the_changes(self, ended, workers):
        """Every round of every plan has closed with all workers, and the bytes are those of the due table."""
        plan = self.report_of("plan", SLOW)
        sizes = [group["bytes"] for group in plan["groups"]]
        changes = [{"iteration": 1, "period": 3}, *ended["period_changes"]]
        rounds, moved = len(sizes), sum(sizes)  # the final round
        for iteration in range(1, ended["iterations"] + 1):
            period = [c["period"] for c in changes if c["iteration"] <= iteration][-1]
            now = [size for g, size in enumerate(sizes) if due(len(sizes), period, g, iteration)]
            rounds += len(now)
            moved += sum(now)
        self.assertEqual(ended["rounds"], rounds)
        self.assertEqual(ended["bytes_pushed"], moved * workers)
        self.assertEqual(ended["bytes_pulled"], moved * workers)

    def stop(self, job):
        """Ends the run at an iteration on which all agree; its report."""
        job.process.signal(signal.SIGTERM)
        self.assert_ends(job.process, 0)
        return job.report()

    def assert_nothing_refused(self, job):
        self.assertEqual(set(job.scrape()["stagger_refused_frames_total"].values()), {0.0})

    def test_changes_take_effect_when_they_say_and_the_run_ends_with_all_rounds(self):
        job = self.start_live("run", SLOW)
        job.await_iteration(5)
        said = []
        for old, new in ((3, 5), (5, 2)):
            status, _, text = self.put(job, {"period": new})
            self.assertEqual(status, 200, text)
            answer = json.loads(text)
            self.assertEqual(answer["period"], new)
            said.append({"iteration": answer["iteration"], "period": new})
            at = job.status()["iteration"] + 1  # the iteration in work; the status counts finished ones
            self.assertLessEqual(answer["iteration"], at + 2 * max(old, new))
            shown = json.loads(job.get("/v1/period")[2])
            self.assertEqual(shown, answer | {"plan_version": len(said) + 1, "auto": False})
            scrape = job.scrape()
            self.assertEqual(scrape["stagger_period_iterations"], {"": float(new)})
            self.assertEqual(scrape["stagger_plan_version"], {"": float(len(said) + 1)})
            job.await_iteration(answer["iteration"] + 1)
        self.assert_nothing_refused(job)
        ended = self.stop(job)
        self.assertEqual(ended["period_changes"], said)
        self.assertEqual(ended["workers_lost"], [])
        self.assert_rounds_follow_the_changes(ended, 2)

    def test_twenty_changes_at_once_are_all_answered_and_wait_for_each_other(self):
        job = self.start_live("run", SLOW)
        job.await_iteration(5)
        periods = [1 + number % 5 for number in range(20)]
        with concurrent.futures.ThreadPoolExecutor(20) as pool:
            answers = list(pool.map(lambda period: self.put(job, {"period": period}), periods))
        self.assertEqual([answer[0] for answer in answers], [200] * 20, answers)
        said = [json.loads(answer[2]) for answer in answers]
        self.assertEqual([answer["period"] for answer in said], periods)
        self.assert_nothing_refused(job)
        job.await_iteration(max(answer["iteration"] for answer in said))
        ended = self.stop(job)
        said = sorted(({"iteration": s["iteration"], "period": s["period"]} for s in said),
                      key=lambda change: change["iteration"])
        self.assertEqual(ended["period_changes"], said)
        for earlier, later in zip([{"iteration": 1, "period": 3}, *said], said):
            self.assertGreaterEqual(later["iteration"], earlier["iteration"] + earlier["period"])
        self.assert_rounds_follow_the_changes(ended, 2)

    def test_what_makes_no_sense_is_refused_and_changes_nothing(self):
        job = self.start_live("run", FAST | {"job.iterations": 10_000_000, "cluster.workers": 2})
        job.await_iteration(5)
        before = job.get("/v1/period")[2]
        for body in ({"period": 0}, {"period": -1}, {"period": "x"}, {"period": 2.5}, {"period": 10**30},
                     {"period": 2**32}, {"period": True}, {"period": None}, {"T": 4}, {},
                     {"period": 4, "T": 4}, [4], "", "{", "period=4", "4", "null"):
            with self.subTest(body=body):
                self.assert_problem(self.put(job, body), 400)
        for method in ("POST", "DELETE", "PATCH"):
            with self.subTest(method=method):
                answer = self.put(job, {"period": 4}, method)
                self.assert_problem(answer, 405)
                self.assertIn("PUT", answer[1]["Allow"])
        self.assert_problem(http(job.endpoints["http"], "/v1/perid", "PUT", '{"period": 4}'), 404)
        self.assert_problem(http(job.endpoints["http"], "/v1/status", "PUT", "{}"), 405)
        self.assertEqual(job.get("/v1/period")[2], before)
        self.assertEqual(job.status()["period_changes"], [])

    def test_bsp_has_no_period_to_change(self):
        job = self.start_live("run", FAST | {
            "job.iterations": 10_000_000, "cluster.workers": 2, "sync.strategy": "bsp", "sync.period": 1})
        job.await_iteration(5)
        answer = self.put(job, {"period": 4})
        self.assert_problem(answer, 409)
        self.assertIn("bsp", answer[2])
        self.assertEqual(job.status()["period"], 1)

    def test_a_change_waits_for_a_frozen_worker_no_longer_than_its_limit(self):
        job = self.start_live("run", FAST | {
            "job.iterations": 10_000_000, "timeouts.heartbeat_s": 0.25, "timeouts.worker_s": 1.5,
            "timeouts.warning_s": 0.5})
        job.await_iteration(5)
        self.freeze(job.pid_of(2))
        status, _, text = self.put(job, {"period": 4})
        self.assertEqual(status, 200, text)
        self.assertEqual(job.status()["workers"][2]["state"], "gone")
        job.await_iteration(json.loads(text)["iteration"] + 10)


if __name__ == "__main__":
    report.main()
