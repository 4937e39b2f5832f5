#!/usr/bin/env python3
"""Strategies, admissions and periods side by side on a link that all workers share and that overflows.

    python3 tests/bench/netlab.py --backend replay --profile resnet50 --workers 8 --rate 200mbit
        --as-rate 1gbit --scale 0.1 --strategies easgd,interleaved --admissions none,grants --periods 1,3
    python3 tests/bench/netlab.py --preset paper

Real processes, each in a network namespace of its own; network.py says how they are joined. They
train on real data, or replay a profile's layer times while pushes and replies are real. Prints a
table of medians. Exit code: 0; 1 when a run failed or its parameters differ from those of a run
without this network; 77 where namespaces cannot be made.
"""

import contextlib
import http.client
import json
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

import common
import netlab_figures as figures_of
import network
from common import BenchError
from netlab_figures import COLUMNS
from netlab_settings import (
    Setting, base_config, job_config, link_of, model_text, parse_arguments, settings)

PS_PORT, HTTP_PORT = 7000, 8000


class Metrics:
    """The PS's /metrics, read while it runs: its last answer is left when the run is over."""

    def __init__(self):
        self.text = ""

    def open_step(self):
        return self.read

    def read(self):
        # Before the PS listens and after it has ended nobody answers.
        with contextlib.suppress(OSError, http.client.HTTPException):
            connection = http.client.HTTPConnection(network.PS_ADDRESS, HTTP_PORT, timeout=5)
            with contextlib.closing(connection):
                connection.request("GET", "/metrics")
                self.text = connection.getresponse().read().decode()

    def sum(self, name):
        """Over all label values; None when the metric was never seen."""
        values = re.findall(rf"^\w*{name}(?:\{{[^}}]*\}})? (\S+)$", self.text, re.MULTILINE)
        return sum(map(float, values)) if values else None


class Roles:
    """The processes of one run; whatever happens, none outlives the block."""

    def __init__(self, lab, program, config, folder):
        self.lab = lab
        self.words = [str(program)]
        self.folder = folder
        self.config = config
        self.path = common.write_config(folder / "config.toml", config)
        self.processes = {}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with network.signals_held():
            for process in self.processes.values():
                if process.poll() is None:
                    process.kill()
                process.wait()

    def start(self, name, namespace, words):
        # A session of its own: a ctrl-C is for the bench, which then ends its processes.
        with (self.folder / f"{name}.log").open("wb") as log:
            self.processes[name] = subprocess.Popen(
                ["ip", "netns", "exec", namespace, *self.words, *words], stdout=log, stderr=log,
                stdin=subprocess.DEVNULL, env=common.environment(), start_new_session=True)

    def start_all(self, limit):
        self.start("ps", self.lab.ps, ["ps", str(self.path)])
        job = self.config["job"]
        endpoints = pathlib.Path(job["directory"], job["name"], "endpoints.json")
        while not endpoints.exists():
            self.check(limit)
            time.sleep(0.02)
        for rank, namespace in enumerate(self.lab.workers):
            self.start(f"worker{rank}", namespace, ["worker", str(self.path), "--rank", str(rank)])

    def check(self, limit):
        for name, process in self.processes.items():
            if process.poll():
                raise BenchError(f"{name} ended with {process.returncode}: "
                                 f"{common.last_line(self.folder / f'{name}.log')}")
        if time.monotonic() > limit:
            raise BenchError(f"{self.folder}: the run takes too long (--limit-s)")

    def wait(self, limit):
        while any(process.poll() is None for process in self.processes.values()):
            self.check(limit)
            time.sleep(0.05)
        self.check(limit)


def run_on(lab, program, config, limit_s):
    """One run across the namespaces; (report, samples of the queue, metrics)."""
    folder = pathlib.Path(config["job"]["directory"], config["job"]["name"] + "-logs")
    folder.mkdir(parents=True, exist_ok=True)
    config = common.changed(config, {
        "cluster.ps": f"{network.PS_ADDRESS}:{PS_PORT}",
        "cluster.listen": f"{network.PS_ADDRESS}:{PS_PORT}",
        "http.listen": f"{network.PS_ADDRESS}:{HTTP_PORT}"})
    limit = time.monotonic() + limit_s
    metrics = Metrics()
    with Roles(lab, program, config, folder) as roles:
        roles.start_all(limit)
        with (lab.sampled_queue() as samples,
              network.repeated(lab.ps, 0.1, metrics.open_step)):
            roles.wait(limit)
    return common.read_report(config), samples, metrics


def measure(lab, program, config, limit_s):
    lab.shape()
    hosts = {"workers": lab.workers, "ps": [lab.ps]}
    before = {name: lab.tcp_counters(some) for name, some in hosts.items()}
    report, samples, metrics = run_on(lab, program, config, limit_s)
    after = {name: lab.tcp_counters(some) for name, some in hosts.items()}
    queue = lab.queue()
    rate = queue["options"]["rate"]
    figures = {**figures_of.report_figures(report), **figures_of.link_figures(samples),
               **figures_of.bound_of(plan_of(program, config, rate), rate)}
    figures.update({
        "iteration_per_bound": figures["iteration_ms"] / figures["bound_ms"],
        "drops": queue["drops"],
        "drop_share": queue["drops"] / max(queue["drops"] + queue["packets"], 1),
        # The kernels' own counts, so that no figure hangs on what the engine says about itself.
        "retransmissions": after["workers"]["RetransSegs"] - before["workers"]["RetransSegs"],
        "retransmissions_ps": after["ps"]["RetransSegs"] - before["ps"]["RetransSegs"],
        "timeouts": after["workers"]["TCPTimeouts"] - before["workers"]["TCPTimeouts"],
        "retransmissions_metric": metrics.sum("connection_retransmissions_total"),
        "link_use": None,
    })
    if figures["bytes_per_second"] is not None:
        figures["link_use"] = figures["bytes_per_second"] / rate
    return {"figures": figures, "queue": queue, "report": report}


def plan_of(program, config, bytes_per_second):
    """What `stagger plan` says of this very config on this link."""
    path = pathlib.Path(config["job"]["directory"], f"{config['job']['name']}-plan.toml")
    common.write_config(path, common.changed(config, {
        "link.rate_bits_per_second": figures_of.payload_rate(bytes_per_second)}))
    done = subprocess.run([str(program), "plan", str(path), "--json"], capture_output=True,
                          text=True, check=False, env=common.environment())
    if done.returncode != 0:
        raise BenchError(f"{path}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def loopback_runs(arguments, lab, program, config):
    """The same jobs without the shaped link, each once: what the parameters must come out as."""
    runs = {}
    for setting in settings(arguments):
        if setting.trained in runs:
            continue
        job = job_config(config, setting._replace(admission="none"), f"{setting.trained}-loopback")
        job = common.changed(job, {"cluster.ps": "127.0.0.1:0", "cluster.listen": "",
                                   "http.enabled": False})
        runs[setting.trained] = common.run_job(
            program, job, arguments.limit_s, ["ip", "netns", "exec", lab.ps])
    return runs


def all_runs(arguments, directory, save):
    program = common.check_program(arguments.program)
    config = base_config(arguments, directory)
    runs = []
    with network.Network(arguments.workers, link_of(arguments)) as lab:
        loopback = loopback_runs(arguments, lab, program, config)
        save(loopback, runs)
        for repeat in range(arguments.repeats):
            # A B A B: what drifts on the machine meets all settings alike.
            for setting in settings(arguments):
                job = job_config(config, setting, "{}-{}-{}".format(
                    setting.trained, setting.admission.replace("+", "-"), repeat))
                run = measure(lab, program, job, arguments.limit_s)
                run.update({**setting._asdict(), "repeat": repeat})
                runs.append(run)
                print("{}: {iteration_ms:.2f} ms an iteration, {drops} drops".format(
                    job["job"]["name"], **run["figures"]), file=sys.stderr)
                save(loopback, runs)
    return loopback, runs


def setting_of(run):
    return Setting(*(run[field] for field in Setting._fields))


def row_of(label, figures):
    return [label, *("-" if figures.get(key) is None else text.format(figures[key])
                     for key, _, text in COLUMNS)]


def print_results(arguments, loopback, runs):
    medians = {setting: common.medians([run["figures"] for run in runs
                                        if setting_of(run) == setting])
               for setting in settings(arguments)}
    rows = [row_of(f"{name}, loopback", figures_of.report_figures(report))
            for name, report in loopback.items()]
    rows += [row_of(setting.label, figures) for setting, figures in medians.items()]
    print(f"{arguments.workers} workers, {model_text(arguments)}; link {arguments.rate}, queue "
          f"{arguments.limit_bytes} B, {arguments.congestion}; times in ms, medians of "
          f"{arguments.repeats}")
    common.print_table(["setting", *(head for _, head, _ in COLUMNS)], rows)
    for setting, figures in medians.items():
        print("{}: an iteration's pushes need {need_ms:.1f} ms of the link, its compute "
              "{compute_ms:.1f} ms; bound {bound_ms:.1f} ms".format(setting.label, **figures))


def differences(loopback, runs):
    """Runs whose parameters are not those of the loopback run of the same strategy and T."""
    wrong = []
    for run in runs:
        found = run["report"]["parameters_sha256"]
        expected = loopback[setting_of(run).trained]["parameters_sha256"]
        if found != expected:
            wrong.append(f"{setting_of(run).label}, repeat {run['repeat']}: parameters {found}, "
                         f"over loopback {expected}")
    return wrong


def bench(arguments, directory):
    facts = {key: str(value) for key, value in vars(arguments).items()}
    facts["load_before"] = common.load_before(arguments.workers + 1)

    def save(loopback, runs):
        common.write_json(arguments.out, {"arguments": facts, "loopback": loopback, "runs": runs})

    loopback, runs = all_runs(arguments, directory, save)
    print_results(arguments, loopback, runs)
    wrong = differences(loopback, runs)
    for line in wrong:
        print(f"netlab: {line}", file=sys.stderr)
    if not wrong:
        print(f"parameters: all {len(runs)} runs bit-identical to loopback; "
              f"raw numbers: {arguments.out}")
    return 1 if wrong else 0


def main():
    arguments = parse_arguments(__doc__)
    reason = network.unavailable(link_of(arguments))
    if reason:
        print(f"netlab: skipped: {reason}")
        return 77
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        if arguments.directory:
            if arguments.directory.exists():
                raise BenchError(f"--directory {arguments.directory}: is there already")
            return bench(arguments, arguments.directory.resolve())
        with tempfile.TemporaryDirectory(prefix="stagger-netlab-") as directory:
            return bench(arguments, pathlib.Path(directory))
    except BenchError as error:
        print(f"netlab: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("netlab: stopped", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
