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
import network  # noqa: E402

PROGRAM = pathlib.Path(os.environ.get("STAGGER_BUILD", ROOT / "build"), "engine", "stagger")
LINK = {"rate": "200mbit", "limit_bytes": 65536, "burst_bytes": 16384, "congestion": "reno"}
LIMIT_S = 240


def command(directory, iterations):
    return [sys.executable, str(ROOT / "tests" / "bench" / "netlab.py"), "--program", str(PROGRAM),
            "--workers", "2", "--repeats", "1", "--iterations", str(iterations),
            "--strategies", "interleaved", "--batch", "32", "--set", "data.train_samples=6400",
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
        self.assertIn("interleaved, slots", output)
        results = json.loads((self.directory / "netlab.json").read_text(encoding="utf-8"))
        expected = results["loopback"]["interleaved"]["parameters_sha256"]
        self.assertEqual([run["admission"] for run in results["runs"]], ["none", "slots"])
        for run in results["runs"]:
            self.assertEqual(run["report"]["parameters_sha256"], expected)
            self.assertGreater(run["report"]["bytes_pushed"], 0)
            self.assertGreaterEqual(run["queue"]["bytes"], run["report"]["bytes_pushed"])
            self.assertLessEqual(run["figures"]["backlog_peak_bytes"], LINK["limit_bytes"])
        self.assertEqual(namespaces_of(process.pid), [])

    def test_ctrl_c_leaves_no_namespace_and_no_process(self):
        process = subprocess.Popen(command(self.directory, 600), text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.addCleanup(process.kill)
        limit = time.monotonic() + LIMIT_S
        # Of the first run across the namespaces, not of the one over loopback before it.
        while not (self.directory / "runs/interleaved-none-0/endpoints.json").exists():
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
        sampled = samples[-1][1]
        self.assertGreater(sampled, 1000)
        # Between the last sample and tc the hosts may still send some packets of their own (IPv6).
        self.assertLessEqual(sampled, shown["bytes"])
        self.assertLess(shown["bytes"] - sampled, 1000)


class Differences(unittest.TestCase):
    def test_a_run_with_other_parameters_than_over_loopback_is_named(self):
        def run(sha, repeat):
            return {"strategy": "bsp", "admission": "none", "repeat": repeat,
                    "report": {"parameters_sha256": sha}}

        loopback = {"bsp": {"parameters_sha256": "aa"}}
        found = netlab.differences(loopback, [run("aa", 0), run("bb", 1)])
        self.assertEqual(len(found), 1)
        self.assertIn("bsp, none, repeat 1", found[0])


if __name__ == "__main__":
    report.main()
