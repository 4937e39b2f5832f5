#!/usr/bin/env python3
"""Admissions and strategies side by side on a link that all workers share and that overflows.

    python3 tests/bench/netlab.py --workers 4 --rate 200mbit --repeats 5

Real processes train on real data, each in a network namespace of its own; network.py says how they
are joined. Prints a table of medians. Exit code: 0; 1 when a run failed or its parameters differ
from those of a run without this network; 77 where namespaces cannot be made.
"""

import argparse
import contextlib
import http.client
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

import common
import network
from common import BenchError

PS_PORT, HTTP_PORT = 7000, 8000
COLUMNS = [
    # key, head, format
    ("pushes_in_flight_max", "in flight", "{:.0f}"),
    ("drops", "drops", "{:.0f}"),
    ("drop_share", "drop %", "{:.2%}"),
    ("retransmissions", "resent", "{:.0f}"),
    ("timeouts", "RTOs", "{:.0f}"),
    ("backlog_peak_bytes", "peak B", "{:.0f}"),
    ("backlog_mean_bytes", "mean B", "{:.0f}"),
    ("link_use", "link use", "{:.0%}"),
    ("iteration_ms", "iter ms", "{:.2f}"),
    ("exposed_seconds", "exposed s", "{:.2f}"),
    ("lateness_p50_us", "late p50 us", "{:.0f}"),
    ("lateness_p99_us", "late p99 us", "{:.0f}"),
]


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    common.add_common(parser)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--rate", default="200mbit", help="of the shared link, as tc writes it")
    parser.add_argument("--limit-bytes", type=int, default=65536, help="length of its queue")
    parser.add_argument("--burst-bytes", type=int, default=16384)
    parser.add_argument("--congestion", default="reno", help="TCP's congestion control; reno is "
                        "the one that every kernel allows in a namespace")
    parser.add_argument("--strategies", default="bsp,easgd,interleaved")
    parser.add_argument("--admissions", default="none,slots")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--iterations", type=int, default=150)
    parser.add_argument("--period", type=int, default=3, help="bsp always has 1")
    parser.add_argument("--model", default="lenet5", choices=["lenet5", "mlp"])
    parser.add_argument("--hidden", default="1024,1024", help="of mlp")
    parser.add_argument("--batch", type=int, default=128, help="per worker")
    parser.add_argument("--limit-s", type=float, default=600.0, help="for one run")
    parser.add_argument("--directory", type=pathlib.Path,
                        help="keep configs, logs and reports here; must be new")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("netlab.json"))
    return parser.parse_args()


def base_config(arguments, directory):
    overrides = {
        "job.directory": str(directory),
        "job.iterations": arguments.iterations,
        "model.name": arguments.model,
        "model.hidden": [int(width) for width in arguments.hidden.split(",")],
        "data.batch": arguments.batch,
        "data.test_samples": 1000,  # accuracy is another bench's
        "sync.period": arguments.period,
        "cluster.workers": arguments.workers,
    }
    config = common.changed(common.read_config(arguments.config, []), overrides)
    return common.changed(config, dict(common.parse_set(text) for text in arguments.sets))


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


def queue_figures(samples):
    """Backlog and use of the link while the middle 98 % of the run's bytes went through."""
    total = samples[-1][1]
    busy = [sample for sample in samples if 0.01 * total <= sample[1] <= 0.99 * total]
    if len(busy) < 2:
        return {"backlog_peak_bytes": None, "backlog_mean_bytes": None, "bytes_per_second": None}
    seconds = busy[-1][0] - busy[0][0]
    return {
        "backlog_peak_bytes": max(sample[2] for sample in samples),
        "backlog_mean_bytes": sum(sample[2] for sample in busy) / len(busy),
        "bytes_per_second": (busy[-1][1] - busy[0][1]) / seconds,
    }


def report_figures(report):
    slots = report["admission"].startswith("slots")  # without slots nothing is late, which is not "in time"
    return {
        "pushes_in_flight_max": report["pushes_in_flight_max"],
        "iteration_ms": 1e3 * report["wall_seconds"] / report["iterations"],
        "exposed_seconds": report["exposed_seconds"],
        "compute_seconds": report["compute_seconds"],
        "lateness_p50_us": report["slot_lateness_us"]["p50"] if slots else None,
        "lateness_p99_us": report["slot_lateness_us"]["p99"] if slots else None,
    }


def measure(lab, program, config, limit_s):
    lab.shape()
    hosts = {"workers": lab.workers, "ps": [lab.ps]}
    before = {name: lab.tcp_counters(some) for name, some in hosts.items()}
    report, samples, metrics = run_on(lab, program, config, limit_s)
    after = {name: lab.tcp_counters(some) for name, some in hosts.items()}
    queue = lab.queue()
    figures = {**report_figures(report), **queue_figures(samples)}
    figures.update({
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
        figures["link_use"] = figures["bytes_per_second"] / queue["options"]["rate"]
    return {"figures": figures, "queue": queue, "report": report}


def settings(arguments):
    return [(strategy, admission) for strategy in arguments.strategies.split(",")
            for admission in arguments.admissions.split(",")]


def job_config(config, strategy, admission, name):
    return common.changed(config, {"job.name": name, "sync.strategy": strategy,
                                   "slots.admission": admission})


def loopback_runs(arguments, lab, program, config):
    """The same jobs without the shaped link, each once: what the parameters must come out as."""
    runs = {}
    for strategy in arguments.strategies.split(","):
        job = job_config(config, strategy, "none", f"{strategy}-loopback")
        job = common.changed(job, {"cluster.ps": "127.0.0.1:0", "cluster.listen": "",
                                   "http.enabled": False})
        runs[strategy] = common.run_job(
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
            for strategy, admission in settings(arguments):
                job = job_config(config, strategy, admission,
                                 f"{strategy}-{admission.replace('+', '-')}-{repeat}")
                run = measure(lab, program, job, arguments.limit_s)
                run.update({"strategy": strategy, "admission": admission, "repeat": repeat})
                runs.append(run)
                print("{}: {iteration_ms:.2f} ms an iteration, {drops} drops".format(
                    job["job"]["name"], **run["figures"]), file=sys.stderr)
                save(loopback, runs)
    return loopback, runs


def link_of(arguments):
    return {"rate": arguments.rate, "limit_bytes": arguments.limit_bytes,
            "burst_bytes": arguments.burst_bytes, "congestion": arguments.congestion}


def cell(text, value):
    return "-" if value is None else text.format(value)


def print_results(arguments, loopback, runs):
    rows = []
    for strategy, report in loopback.items():
        figures = report_figures(report)
        rows.append([f"{strategy}, loopback",
                     *(cell(text, figures.get(key)) for key, _, text in COLUMNS)])
        for admission in arguments.admissions.split(","):
            figures = common.medians([
                run["figures"] for run in runs
                if (run["strategy"], run["admission"]) == (strategy, admission)])
            rows.append([f"{strategy}, {admission}",
                         *(cell(text, figures[key]) for key, _, text in COLUMNS)])
    print(f"{arguments.workers} workers, {arguments.model}, batch {arguments.batch}, "
          f"T={arguments.period}; link {arguments.rate}, queue {arguments.limit_bytes} B, "
          f"{arguments.congestion}; medians of {arguments.repeats}")
    common.print_table(["setting", *(head for _, head, _ in COLUMNS)], rows)
    for strategy, report in loopback.items():
        # All workers' pushes of one iteration on the link, against one worker's compute.
        rate = runs[0]["queue"]["options"]["rate"]
        link = 1e3 * report["bytes_pushed"] / report["iterations"] / rate
        compute = 1e3 * report["compute_seconds"] / report["iterations"] / report["workers"]
        print(f"{strategy}: an iteration's pushes need {link:.1f} ms of the link, "
              f"its compute {compute:.1f} ms")


def differences(loopback, runs):
    """Runs whose parameters are not those of the loopback run of the same strategy."""
    return [f"{run['strategy']}, {run['admission']}, repeat {run['repeat']}: parameters "
            f"{run['report']['parameters_sha256']}, over loopback "
            f"{loopback[run['strategy']]['parameters_sha256']}"
            for run in runs
            if run["report"]["parameters_sha256"] != loopback[run["strategy"]]["parameters_sha256"]]


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
    arguments = parse_arguments()
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
