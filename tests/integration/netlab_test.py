#!/usr/bin/env python3
"""The bench on network namespaces, at a small size: it measures what it says and cleans up."""

import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "support"), str(ROOT / "tests" / "bench")]

import report  # noqa: E402
import netlab  # noqa: E402
import netlab_figures  # noqa: E402
import netlab_settings  # noqa: E402
import network  # noqa: E402

PROGRAM = pathlib.Path(os.environ.get("STAGGER_BUILD", ROOT / "build"), "engine", "stagger")
LINK = {"rate": "200mbit", "limit_bytes": 65536, "burst_bytes": 16384, "congestion": "reno"}
LIMIT_S = 240


def command(directory, iterations):
    return [sys.executable, str(ROOT / "tests" / "bench" / "netlab.py"), "--program", str(PROGRAM),
            "--workers", "2", "--repeats", "1", "--iterations", str(iterations),
            "--backend", "replay", "--scale", "0.02", "--as-rate", "1gbit",
            "--strategies", "interleaved", "--limit-bytes", "65536",
            "--directory", str(directory / "runs"), "--out", str(directory / "netlab.json")]


def namespaces_of(pid):
    listed = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True)
    return [line for line in listed.stdout.split("\n") if line.startswith(f"stagger-{pid}-")]


def processes_naming(text):
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:
            continue  # ended meanwhile
        if any(text.encode() in word for word in words):
            found.append(path.parent.name)
    return found


class Netlab(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        reason = network.unavailable(LINK)
        if reason:
            raise unittest.SkipTest(reason)

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.directory = pathlib.Path(folder.name)

    def test_parameters_do_not_depend_on_the_network_and_all_pushes_cross_the_shaped_link(self):
        process = subprocess.Popen(command(self.directory, 12), text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        output, _ = process.communicate(timeout=LIMIT_S)
        self.assertEqual(process.returncode, 0, output)
        self.assertIn("interleaved, T=3, slots", output)
        results = json.loads((self.directory / "netlab.json").read_text(encoding="utf-8"))
        expected = results["loopback"]["interleaved-T3"]["parameters_sha256"]
        self.assertEqual([run["admission"] for run in results["runs"]], ["none", "slots"])
        for run in results["runs"]:
            self.assertEqual(run["report"]["parameters_sha256"], expected)
            self.assertGreater(run["report"]["bytes_pushed"], 0)
            self.assertGreaterEqual(run["queue"]["bytes"], run["report"]["bytes_pushed"])
            self.check_figures(run["figures"])
        self.assertEqual(namespaces_of(process.pid), [])

    def check_figures(self, figures):
        self.assertLessEqual(figures["backlog_peak_bytes"], LINK["limit_bytes"])
        self.assertGreater(figures["push_p50_ms"], 0)
        self.assertGreaterEqual(figures["push_p99_ms"], figures["push_p50_ms"])
        self.assertGreaterEqual(figures["ready_to_done_p50_ms"], figures["push_p50_ms"])
        self.assertGreater(figures["iteration_ms"], 0)
        self.assertGreater(figures["iteration_per_bound"], 0)
        for load in ("ingress", "offered"):
            self.assertGreater(figures[f"{load}_mean"], 0)
            self.assertGreaterEqual(figures[f"{load}_peak_per_mean"], 1)

    def test_ctrl_c_leaves_no_namespace_and_no_process(self):
        process = subprocess.Popen(command(self.directory, 600), text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.addCleanup(process.kill)
        limit = time.monotonic() + LIMIT_S
        # Of the first run across the namespaces, not of the one over loopback before it.
        while not (self.directory / "runs/interleaved-T3-none-0/endpoints.json").exists():
            self.assertIsNone(process.poll(), "the bench ended by itself")
            self.assertLess(time.monotonic(), limit)
            time.sleep(0.05)
        self.assertNotEqual(namespaces_of(process.pid), [])
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=LIMIT_S)
        self.assertEqual(process.returncode, 130, output)
        self.assertEqual(namespaces_of(process.pid), [])
        self.assertEqual(processes_naming(str(self.directory)), [])

    def test_the_sampled_queue_is_the_one_that_tc_shows(self):
        def open_step():
            sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            return lambda: sender.sendto(bytes(1000), (network.PS_ADDRESS, 9))

        with network.Network(1, LINK) as lab:
            with lab.sampled_queue() as samples:
                with network.repeated(lab.workers[0], 0.01, open_step):
                    time.sleep(0.2)
            shown = lab.queue()
        sampled = samples[-1].sent
        self.assertGreater(sampled, 1000)
        # Between the last sample and tc the hosts may still send some packets of their own (IPv6).
        self.assertLessEqual(sampled, shown["bytes"])
        self.assertLess(shown["bytes"] - sampled, 1000)


class Differences(unittest.TestCase):
    def test_a_run_with_other_parameters_than_over_loopback_is_named(self):
        def run(sha, repeat):
            return {"strategy": "bsp", "period": 1, "admission": "none", "name": "",
                    "repeat": repeat, "report": {"parameters_sha256": sha}}

        loopback = {"bsp-T1": {"parameters_sha256": "aa"}}
        found = netlab.differences(loopback, [run("aa", 0), run("bb", 1)])
        self.assertEqual(len(found), 1)
        self.assertIn("bsp, T=1, none, repeat 1", found[0])


class Settings(unittest.TestCase):
    def settings(self, *words):
        return netlab_settings.settings(netlab_settings.parse_arguments("", words))

    def test_are_every_strategy_with_every_period_and_admission_and_bsp_once(self):
        rows = self.settings("--strategies", "bsp,easgd", "--periods", "1,4",
                             "--admissions", "none,grants")
        self.assertEqual([row.label for row in rows], [
            "bsp, T=1, none", "bsp, T=1, grants", "easgd, T=1, none", "easgd, T=1, grants",
            "easgd, T=4, none", "easgd, T=4, grants"])

    def test_of_the_paper_are_both_interleavings_alone_and_together(self):
        rows = self.settings("--preset", "paper")
        self.assertEqual([row.label for row in rows], [
            "plain: easgd, T=1, none", "inter: interleaved, T=3, none",
            "intra: easgd, T=1, grants", "both: interleaved, T=3, grants"])

    def test_of_a_slower_link_scale_bytes_so_that_its_need_against_compute_stays(self):
        arguments = netlab_settings.parse_arguments("", [
            "--backend", "replay", "--rate", "200mbit", "--as-rate", "1gbit", "--scale", "0.5"])
        backend = netlab_settings.base_config(arguments, "runs")["backend"]
        self.assertEqual((backend["time_scale"], backend["bytes_scale"]), (0.5, 0.1))


class Figures(unittest.TestCase):
    def samples(self, counts, step_s=0.005):
        return [network.Sample(at=i * step_s, sent=count, backlog=0, ingress=count, offered=count)
                for i, count in enumerate(counts)]

    def test_of_an_even_load_have_a_peak_of_the_mean_and_of_a_burst_a_higher_one(self):
        even = netlab_figures.link_figures(self.samples(range(0, 2000, 10)))
        self.assertAlmostEqual(even["ingress_peak_per_mean"], 1.0)
        self.assertAlmostEqual(even["ingress_mean"], 2000.0)
        burst = netlab_figures.link_figures(
            self.samples([*range(0, 1000, 10), *range(1500, 2500, 10)]))
        self.assertGreater(burst["offered_peak_per_mean"], 10)

    def test_of_a_run_without_traffic_are_none(self):
        self.assertIsNone(netlab_figures.link_figures(self.samples([0]))["ingress_mean"])

    def test_bound_an_iteration_by_compute_or_by_what_the_pushes_need_of_the_link(self):
        plan = {"strategy": "interleaved", "rule": "old_center", "period": 2, "workers": 4,
                "groups": [{"bytes": 1448 * 1000}, {"bytes": 1448 * 1000}],
                "prediction": {"compute_us": 9000.0, "iteration_us": 7000.0}}
        # 4 workers' 2000 packets in two iterations.
        bound = netlab_figures.bound_of(plan, 1514 * 1000 * 100)
        self.assertAlmostEqual(bound["need_ms"], 40.0)
        self.assertAlmostEqual(bound["bound_ms"], 40.0)
        self.assertAlmostEqual(netlab_figures.bound_of(plan, 1e15)["bound_ms"], 9.0)
        plan["rule"] = "post_step"  # waits: as the plan predicts
        self.assertAlmostEqual(netlab_figures.bound_of(plan, 1e15)["bound_ms"], 7.0)


if __name__ == "__main__":
    report.main()
