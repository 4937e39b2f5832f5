"""What the program shows: metrics, status, plans, help, and the table of exit codes."""

import pathlib
import re
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import report
from stagger import FAST, LIMIT, SOURCE, JobTest, wait_until

COMMANDS = ("run", "ps", "worker", "plan", "evaluate", "simulate")

# name without the prefix: how many children after a while (None: as many as groups)
BUSY = {
    "iterations_total": 4, "samples_total": 4, "loss": 4, "iteration_seconds_count": 4,
    "iteration_seconds_sum": 4, "exposed_seconds_total": 4, "compute_seconds_total": 4,
    "push_bytes_total": None, "pull_bytes_total": None, "push_seconds_count": None,
    "push_seconds_sum": None, "slot_lateness_seconds_count": 4, "worker_up": 4,
    "connection_round_trip_seconds": 4, "pushes_in_flight_max": 1, "ingress_bytes_total": 1,
    "egress_bytes_total": 1, "rounds_total": 1, "period_iterations": 1, "plan_version": 1}


class Metrics(JobTest):
    def start_busy(self):
        job = self.start_live("run", FAST | {
            "job.iterations": 10_000_000, "timeouts.heartbeat_s": 0.1})
        job.await_iteration(200)
        return job

    def test_every_metric_that_a_run_moves_is_there_and_moves(self):
        job = self.start_busy()
        scrape = wait_until(
            lambda: (lambda s: s if "stagger_round_wait_seconds_count" in s else None)(job.scrape()),
            "a round has waited")
        groups = len(self.report_of("plan", FAST)["groups"])
        for name, children in BUSY.items():
            with self.subTest(metric=name):
                values = scrape[f"stagger_{name}"]
                self.assertEqual(len(values), groups if children is None else children)
                self.assertTrue(all(value > 0 for value in values.values()), values)
        self.assertIn("stagger_connection_retransmissions_total", scrape)
        self.assertIn("stagger_pushes_in_flight", scrape)
        self.assertEqual(len(scrape["stagger_refused_frames_total"]), 12)
        self.assertEqual(set(scrape["stagger_refused_frames_total"].values()), {0.0})
        self.assertLessEqual(scrape["stagger_pushes_in_flight_max"][""], 4 * groups)

        later = wait_until(
            lambda: (lambda s: s if s["stagger_iterations_total"]['rank="0"'] >
                     scrape["stagger_iterations_total"]['rank="0"'] else None)(job.scrape()),
            "the counters move")
        for name in scrape:
            if name.endswith("_total"):
                for labels, value in scrape[name].items():
                    self.assertGreaterEqual(later[name][labels], value, f"{name} goes back")

    def test_promtool_finds_nothing_to_complain_about(self):
        if not shutil.which("promtool"):
            self.skipTest("promtool is missing: apt-get install prometheus")
        job = self.start_busy()
        status, headers, text = job.get("/metrics")
        self.assertEqual(status, 200)
        self.assertTrue(headers["Content-Type"].startswith("text/plain; version=0.0.4"))
        checked = subprocess.run(
            ["promtool", "check", "metrics"], input=text, capture_output=True, text=True, timeout=LIMIT)
        self.assertEqual((checked.returncode, checked.stdout, checked.stderr), (0, "", ""))

    def test_status_health_and_readiness_follow_the_run(self):
        job = self.start_live("ps", FAST | {"cluster.workers": 2, "job.iterations": 10_000_000})
        self.assertEqual(job.get("/healthz")[0], 200)
        self.assertEqual(job.get("/readyz")[0], 503)
        self.assertEqual(job.status()["state"], "waiting")
        for rank in range(2):
            self.start_worker(job, rank)
        status = job.await_iteration(1)
        self.assertEqual(job.get("/readyz")[0], 200)
        self.assertEqual((status["state"], status["job"], status["period"]), ("training", "quickstart", 3))
        self.assertEqual([worker["state"] for worker in status["workers"]], ["active"] * 2)
        self.assertEqual(job.get("/nothing")[0], 404)


class Plans(JobTest):
    TIMES = [4, 4, 6, 6, 8, 8, 8, 10, 6]
    WINDOWS = {
        1: [4, 6, 6, 8, 8, 8, 10, 6, 0], 2: [10, 12, 14, 16, 16, 18, 16, 9, 0],
        3: [16, 20, 22, 24, 26, 24, 24, 9, 0], 4: [24, 28, 30, 34, 32, 36, 24, 9, 0],
        9: [84, 78, 69, 60, 48, 36, 24, 9, 0], 12: [84, 78, 69, 60, 48, 36, 24, 9, 0]}

    def profile(self):
        """The backward times of the paper's example as a profile, forward order."""
        path = self.folder / "profile.csv"
        rows = ["name,params,bytes,t_fwd_us,t_bwd_us"]
        rows += [f"layer{index},100,400,{time / 2},{time}"
                 for index, time in enumerate(reversed(self.TIMES))]
        path.write_text("\n".join(rows) + "\n")
        return path

    def test_a_plan_from_a_profile_has_the_windows_of_the_paper(self):
        path = self.profile()
        for period, windows in self.WINDOWS.items():
            with self.subTest(period=period):
                plan = self.report_of(
                    "plan", {"sync.period": period, "groups.planner": "layerwise"}, "--profile", path)
                groups = plan["groups"]
                self.assertEqual([group["window_us"] for group in groups], windows)
                self.assertEqual([group["slot_us"] for group in groups], [w / 4 for w in windows])
                self.assertEqual(
                    [group["cur_us"] for group in groups], [4, 8, 14, 20, 28, 36, 44, 54, 60])
                self.assertEqual([group["index"] for group in groups], list(range(9)))
                self.assertEqual([group["layers"] for group in groups],
                                 [[f"layer{8 - g}"] for g in range(9)])
                self.assertEqual([group["bytes"] for group in groups], [400] * 9)
                self.assertEqual(plan["period"], period)

    def test_a_plan_is_shown_as_text_and_as_json(self):
        plan = self.report_of("plan", FAST)
        self.assertEqual(
            list(plan),
            ["version", "first_iteration", "strategy", "rule", "period", "workers", "alpha", "beta",
             "outer_momentum", "admission", "groups", "prediction"])
        self.assertIsNone(plan["prediction"])
        self.assertAlmostEqual(plan["alpha"], 0.225)
        process = self.start("plan", FAST)
        self.assert_ends(process, 0)
        for group in plan["groups"]:
            self.assertIn(str(group["bytes"]), process.out)
        self.assertIn("give --bandwidth 1gbit", process.out)

    def test_a_plan_predicts_times_where_the_link_is_known(self):
        changes = {"sync.period": 3, "groups.planner": "layerwise", "slots.admission": "none"}
        # 400 bytes take 3.2 us, no start: 4 workers push for 12.8 us, and have the center as long after.
        link = ("--bandwidth", "1gbit", "--latency", "0us", "--profile", self.profile())
        prediction = self.report_of("plan", changes, *link)["prediction"]
        self.assertEqual(prediction["link"], {"rate_bits_per_second": 1e9, "start_us": 0})
        self.assertEqual(prediction["compute_us"], 90)
        self.assertEqual([group["need_us"] for group in prediction["groups"]], [12.8] * 9)
        self.assertEqual([group["iteration"] for group in prediction["groups"]], [3, 2, 1] * 3)
        self.assertEqual(prediction["groups"][2]["push_start_us"], 44)
        self.assertTrue(prediction["hidden"])
        self.assertEqual(prediction["iteration_us"], 90)
        self.assertEqual(prediction["period_smallest"], 2)
        process = self.start("plan", changes, *link)
        self.assert_ends(process, 0)
        self.assertIn("T=2 is the smallest", process.out)
        by_config = changes | {"link.rate_bits_per_second": "1e9", "link.start_us": 0}
        again = self.report_of("plan", by_config, "--profile", self.profile())
        self.assertEqual(again["prediction"], prediction)

    def test_a_link_that_cannot_be_is_refused(self):
        for flags, words in (
                (("--bandwidth", "0"), "--bandwidth 0: expected a finite rate"),
                (("--bandwidth", "inf"), "--bandwidth inf: expected a finite rate"),
                (("--latency", "-1us"), "--latency -1us: expected a finite time"),
                (("--set", "link.rate_bits_per_second=0"), "link.rate_bits_per_second"),
                (("--set", "link.rate_bits_per_second=inf"), "link.rate_bits_per_second")):
            with self.subTest(flags=flags):
                self.assert_complains(self.start("plan", None, *flags), 2, words)

    def test_a_profile_that_is_missing_or_wrong_is_named(self):
        wrong = self.folder / "wrong.csv"
        for text in ("", "name,params\n", "name,params,bytes,t_fwd_us,t_bwd_us\na,1,4,x,1\n"):
            with self.subTest(text=text):
                wrong.write_text(text)
                self.assert_complains(self.start("plan", None, "--profile", wrong), 3, wrong)
        missing = self.folder / "missing.csv"
        self.assert_complains(self.start("plan", None, "--profile", missing), 3, missing)


class Help(JobTest):
    def test_the_help_of_each_command_shows_an_example(self):
        overview = self.launch("--help")
        self.assert_ends(overview, 0)
        for command in COMMANDS:
            with self.subTest(command=command):
                self.assertIn(command, overview.out)
                process = self.launch(command, "--help")
                self.assert_ends(process, 0)
                self.assertIn(f"Example: stagger {command} configs/", process.out)

    def test_the_readme_lists_every_exit_code(self):
        header = (SOURCE / "engine" / "exit_code.hpp").read_text()
        codes = {int(code) for code in re.findall(r"^  \w+ = (\d+),", header, re.MULTILINE)}
        self.assertGreater(len(codes), 5)
        text = (SOURCE / "README.md").read_text()
        table = text[text.index("| exit code | meaning |"):].split("\n\n")[0]
        self.assertEqual({int(code) for code in re.findall(r"^\| (\d+) \|", table, re.MULTILINE)}, codes)


if __name__ == "__main__":
    report.main()
