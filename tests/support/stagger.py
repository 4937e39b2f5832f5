"""Starts the program for tests: small data, bounded waits, and nothing left running.

    from stagger import JobTest          # with tests/support on sys.path

    class Example(JobTest):
        def test_a_run_ends(self):
            report = self.report_of("run", {"job.iterations": 30})

A test owns a folder and every process whose command line names it; both go with the test, however it ends.
"""

import atexit
import contextlib
import gzip
import json
import os
import pathlib
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time
import unittest
import urllib.error
import urllib.request

SOURCE = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = SOURCE / os.environ.get("STAGGER_BUILD", "build") / "engine" / "stagger"
QUICKSTART = SOURCE / "configs" / "quickstart.toml"
DATASET = pathlib.Path("/usr/share/datasets/fashion-mnist")
TRAIN_SAMPLES = 2048
TEST_SAMPLES = 500

# Long enough for a crowded machine: what should happen happens at once, what should not never does.
LIMIT = 60.0

# A small model that iterates fast.
FAST = {"model.name": "mlp", "model.hidden": "[24, 24, 24]", "data.batch": 8}

# A worker's death is found out soon.
QUICK_LOSS = {"timeouts.heartbeat_s": 0.25, "timeouts.worker_s": 1.5, "timeouts.warning_s": 0.5}

# A worker's death is not found out during a test: what closes rounds is its return.
NO_LOSS = {"timeouts.worker_s": 120}


def wait_until(condition, what, limit=LIMIT):
    """The first true value of condition(); fails after `limit` seconds."""
    end = time.monotonic() + limit
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"not within {limit:.0f} s: {what}")
        time.sleep(0.01)


def _write_head(source, target, header_bytes, count, item_bytes):
    """The first `count` items of an IDX file, unpacked, so that starting a process takes no second."""
    with gzip.open(source, "rb") as packed:
        header = packed.read(header_bytes)
        items = packed.read(count * item_bytes)
    target.write_bytes(header[:4] + struct.pack(">I", count) + header[8:] + items)


_data = {}


def small_data():
    """Settings of [data] that name the first samples of Fashion-MNIST in plain files."""
    if _data:
        return _data
    if not DATASET.is_dir():
        raise unittest.SkipTest(f"{DATASET} is missing: apt-get install dataset-fashion-mnist")
    folder = pathlib.Path(tempfile.mkdtemp(prefix="stagger-data-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    for key, name, header, count, item in (
            ("train_images", "train-images-idx3-ubyte", 16, TRAIN_SAMPLES, 784),
            ("train_labels", "train-labels-idx1-ubyte", 8, TRAIN_SAMPLES, 1),
            ("test_images", "t10k-images-idx3-ubyte", 16, TEST_SAMPLES, 784),
            ("test_labels", "t10k-labels-idx1-ubyte", 8, TEST_SAMPLES, 1)):
        _write_head(DATASET / f"{name}.gz", folder / name, header, count, item)
        _data[f"data.{key}"] = folder / name
    return _data


class Process:
    """A started program. Its output goes to files, so that it never waits for a reader."""

    def __init__(self, words, folder, environment=None):
        self.words = [str(word) for word in words]
        number = len(list(folder.glob("*.out")))
        self._out = folder / f"{number}.out"
        self._err = folder / f"{number}.err"
        variables = {name: value for name, value in os.environ.items()
                     if not name.startswith(("STAGGER_", "SLURM_", "OMPI_", "PMI_"))}
        with open(self._out, "wb") as out, open(self._err, "wb") as err:
            self.popen = subprocess.Popen(
                self.words, stdin=subprocess.DEVNULL, stdout=out, stderr=err, cwd=folder,
                env=variables | {"OMP_NUM_THREADS": "1"} | (environment or {}), start_new_session=True)

    @property
    def out(self):
        return self._out.read_text(encoding="utf-8", errors="replace")

    @property
    def err(self):
        return self._err.read_text(encoding="utf-8", errors="replace")

    @property
    def complaints(self):
        """What the program says about itself; log lines begin with a date."""
        return [line for line in self.err.splitlines() if not line[:4].isdigit()]

    def running(self):
        return self.popen.poll() is None

    def signal(self, number):
        self.popen.send_signal(number)

    def wait(self, limit=LIMIT):
        try:
            return self.popen.wait(limit)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"still running after {limit:.0f} s: {self.describe()}") from None

    def describe(self):
        return f"{' '.join(self.words)}\n--- stdout\n{self.out[-4000:]}\n--- stderr\n{self.err[-6000:]}"


def command_line(pid):
    """The words of a process; none when it has ended."""
    with contextlib.suppress(OSError):
        return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")[:-1]
    return []


def processes_of(folder):
    """{pid: words} of the processes whose command line names the folder."""
    found = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit() and int(entry) != os.getpid():
            words = command_line(entry)
            if any(str(folder) in word for word in words):
                found[int(entry)] = words
    return found


def http(address, path, method="GET", body=None):
    """(status, headers, text) of a request, whatever the status."""
    data = body.encode() if isinstance(body, str) else body
    request = urllib.request.Request(f"http://{address}{path}", data=data, method=method)
    try:
        with urllib.request.urlopen(request, timeout=LIMIT) as answer:
            return answer.status, answer.headers, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.headers, error.read().decode()


def metrics(text):
    """{name: {labels: value}} of a scrape; a histogram's parts keep their suffixes."""
    found = {}
    for line in text.splitlines():
        if line and not line.startswith("#"):
            key, _, value = line.rpartition(" ")
            name, _, labels = key.partition("{")
            found.setdefault(name, {})[labels.rstrip("}")] = float(value)
    return found


def read_safetensors(path):
    """{name: values} of a file of float32 tensors, in the file's order."""
    data = pathlib.Path(path).read_bytes()
    (size,) = struct.unpack_from("<Q", data)
    header = json.loads(data[8:8 + size])
    tensors = {}
    for name, entry in header.items():
        if name != "__metadata__":
            begin, end = (8 + size + offset for offset in entry["data_offsets"])
            tensors[name] = memoryview(data)[begin:end].cast("f")
    return tensors


def due(groups, period, group, iteration):
    """The schedule's rule: group g of N is due in iteration j iff (N - g) mod T == j mod T."""
    return (groups - group) % period == iteration % period


class LiveJob:
    """A running `stagger run` or `stagger ps`: where it listens, and who belongs to it."""

    def __init__(self, process, directory):
        self.process = process
        self.directory = directory
        path = directory / "endpoints.json"

        def listening():
            if not process.running():
                raise AssertionError(f"ended with {process.wait()}: {process.describe()}")
            return path.exists()

        wait_until(listening, f"{path} is there")
        self.endpoints = json.loads(path.read_text())

    @property
    def ps(self):
        return self.endpoints["ps"]

    def ps_host_and_port(self):
        host, _, port = self.ps.rpartition(":")
        return host, int(port)

    def get(self, path):
        return http(self.endpoints["http"], path)

    def status(self):
        return json.loads(self.get("/v1/status")[2])

    def scrape(self):
        return metrics(self.get("/metrics")[2])

    def await_iteration(self, iteration):
        """The status once training has come so far."""
        def reached():
            try:
                status = self.status()
            except OSError as error:
                # Nobody listens any more: what the program says of it is worth more than that.
                raise AssertionError(
                    f"{error} before iteration {iteration}: {self.process.describe()}") from error
            return status if status["iteration"] >= iteration else None
        return wait_until(reached, f"iteration {iteration}")

    def await_state(self, rank, state):
        def there():
            return self.status()["workers"][rank]["state"] == state
        wait_until(there, f"rank {rank} is {state}")

    def pid_of(self, role):
        """Of "ps" or a worker's rank, among the processes of this run."""
        for pid, words in processes_of(self.directory).items():
            if role == "ps" and "ps" in words[1:2]:
                return pid
            if "worker" in words[1:2] and "--rank" in words and words[words.index("--rank") + 1] == str(role):
                return pid
        raise AssertionError(f"no process of role {role}")

    def report(self):
        return json.loads((self.directory / "report.json").read_text())


class JobTest(unittest.TestCase):
    def setUp(self):
        if not PROGRAM.exists():
            raise AssertionError(f"{PROGRAM} is not built")
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="stagger-test-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.addCleanup(self._end_processes)
        self._processes = []

    def _end_processes(self):
        for _ in range(3):  # a killed parent's children may be starting others
            for pid in processes_of(self.folder):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        for process in self._processes:
            if process.running():
                process.popen.kill()
            process.popen.wait(LIMIT)

    def settings(self, changes=None, directory="runs"):
        """The words of --set: the small data, a folder of the test's own, and the changes."""
        settings = small_data() | {
            "job.directory": self.folder / directory, "job.iterations": 30} | (changes or {})
        words = []
        for key, value in settings.items():
            text = str(value).lower() if isinstance(value, bool) else str(value)
            words += ["--set", f"{key}={text}"]
        return words

    def launch(self, *words, environment=None):
        process = Process([PROGRAM, *words], self.folder, environment)
        self._processes.append(process)
        return process

    def start(self, command, changes=None, *words, directory="runs", environment=None):
        return self.launch(
            command, QUICKSTART, *self.settings(changes, directory), *words, environment=environment)

    def start_live(self, command, changes=None, *words, directory="runs"):
        process = self.start(command, changes, *words, directory=directory)
        return LiveJob(process, self.folder / directory / "quickstart")

    def start_worker(self, job, rank):
        """A worker of a live `stagger ps` or `stagger run`, as somebody would start it by hand."""
        return self.launch(
            "worker", job.directory / "config.toml", "--ps", job.ps, "--rank", rank)

    def kill(self, pid, number):
        os.kill(pid, number)

    def freeze(self, pid):
        self.kill(pid, signal.SIGSTOP)

    def free_port(self):
        """A port that was free a moment ago, for a config that must name it beforehand."""
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            return listener.getsockname()[1]

    def assert_ends(self, process, code, limit=LIMIT):
        self.assertEqual(process.wait(limit), code, process.describe())

    def assert_complains(self, process, code, *fragments, limit=LIMIT):
        """One line on stderr beside the log, with all the fragments, and the exit code."""
        self.assert_ends(process, code, limit)
        self.assertEqual(len(process.complaints), 1, process.describe())
        (line,) = process.complaints
        self.assertTrue(line.startswith("stagger: "), line)
        for fragment in fragments:
            self.assertIn(str(fragment), line)

    def report_of(self, command, changes=None, *words, directory="runs"):
        """The JSON that a command ends with."""
        process = self.start(command, changes, "--json", *words, directory=directory)
        self.assert_ends(process, 0, 2 * LIMIT)
        return json.loads(process.out)
