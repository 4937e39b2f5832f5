"""Mistakes that a user can make: one line that says where and what to do, a documented code, nothing written over."""

import gzip
import os
import pathlib
import socket
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import report
from stagger import FAST, QUICKSTART, JobTest, LiveJob, small_data

USAGE, DATA, PS_LOST, REFUSED, ADDRESS_IN_USE, STORAGE = 2, 3, 4, 5, 6, 9
PAIR = FAST | {"cluster.workers": 2, "job.iterations": 20, "optimizer.lr": 0.02}


def contents(folder):
    return {str(path.relative_to(folder)): path.read_bytes()
            for path in folder.rglob("*") if path.is_file()}


class ConfigMistakes(JobTest):
    def test_a_wrong_setting_is_named_with_what_would_be_right(self):
        table = [
            ("sync.perid=3", ["sync.perid", "unknown key", "did you mean sync.period?"]),
            ("snyc.period=3", ["snyc", "unknown table", "did you mean sync?"]),
            ("sync.period=0", ["sync.period", "0"]),
            ("sync.period=-1", ["sync.period", "-1"]),
            ("sync.period=often", ["sync.period", "integer"]),
            ("sync.period=2.5", ["sync.period", "integer"]),
            ("sync.strategy=easgdd", ["sync.strategy", "easgd"]),
            ("sync.beta=2.5", ["sync.beta", "2"]),
            ("sync.final_round=3", ["sync.final_round"]),
            ("optimizer.lr=0", ["optimizer.lr"]),
            ("cluster.workers=0", ["cluster.workers"]),
            ("cluster.ps=nowhere", ["cluster.ps"]),
            ("wire.chunk_bytes=5000", ["wire.chunk_bytes", "multiple of 64"]),
            ("timeouts.worker_s=0.5", ["timeouts.worker_s", "timeouts.heartbeat_s"]),
            ("job.name=../../etc", ["job.name"]),
            ("sync.period", ["sync.period", "expected table.key=value"]),
            ("sync.alpha=1.9", ["alpha"]),
        ]
        for setting, fragments in table:
            with self.subTest(setting=setting):
                process = self.start("run", None, "--set", setting)
                self.assert_complains(process, USAGE, *fragments, limit=20)
        self.assertFalse((self.folder / "runs").exists())

    def test_a_mistake_in_a_file_is_named_with_file_and_line(self):
        lines = QUICKSTART.read_text().splitlines()
        number = lines.index("[sync]") + 1
        table = [
            ("perid = 3", f":{number + 1}:1: ", "did you mean sync.period?"),
            ('period = "3"', f":{number + 1}:", "sync.period"),
            ("period = ", f":{number + 1}:", ""),
        ]
        path = self.folder / "wrong.toml"
        rest = [line for line in lines[number:] if not line.startswith("period")]
        for line, place, fragment in table:
            with self.subTest(line=line):
                path.write_text("\n".join(lines[:number] + [line] + rest))
                self.assert_complains(self.launch("run", path), USAGE, f"{path}{place}", fragment)

    def test_a_config_that_is_missing_is_named(self):
        self.assert_complains(self.launch("run", "missing.toml"), USAGE, "missing.toml")

    def test_a_command_line_that_makes_no_sense_is_refused(self):
        table = [
            ([], "subcommand"), (["sing"], "subcommand"), (["run"], "config"),
            (["run", QUICKSTART, "--sets", "a=1"], "--sets"),
            (["worker", QUICKSTART, "--rank", "many"], "--rank"),
            (["worker", QUICKSTART, "--rank", "-1"], "--rank"),
        ]
        for words, fragment in table:
            with self.subTest(words=words):
                process = self.launch(*words)
                self.assert_ends(process, USAGE, 20)
                self.assertIn(fragment, process.err)

    def test_a_rank_that_does_not_exist_is_refused_before_anything_is_dialled(self):
        process = self.start("worker", {"cluster.workers": 2}, "--ps", "127.0.0.1:9", "--rank", 2)
        self.assert_complains(process, USAGE, "--rank 2", "cluster.workers is 2", "0..1")
        process = self.launch(
            "worker", QUICKSTART, *self.settings(), "--ps", "127.0.0.1:9",
            environment={"SLURM_PROCID": "x"})
        self.assert_complains(process, USAGE, "SLURM_PROCID=x")

    def test_a_worker_that_does_not_know_its_ps_says_how_to_name_it(self):
        self.assert_complains(self.start("worker"), USAGE, "cluster.ps", "--ps", "STAGGER_PS")
        process = self.start("worker", None, "--ps", "nowhere")
        self.assert_complains(process, USAGE, "--ps nowhere")


class DataMistakes(JobTest):
    def wrong_files(self):
        data = small_data()
        images = pathlib.Path(data["data.train_images"]).read_bytes()
        files = {
            "truncated": (images[:100_000], "truncated"),
            "magic": (b"\x00\x00\x0d\x03" + images[4:], "magic"),
            "text": (b"<html>404 not found</html>", "magic"),
            "empty": (b"", "truncated"),
            "torn.gz": (gzip.compress(images[:200_000])[:5_000], ""),
        }
        for name, (content, fragment) in files.items():
            path = self.folder / name
            path.write_bytes(content)
            yield path, fragment
        yield self.folder / "missing", ""

    def test_a_data_file_that_is_missing_or_wrong_is_named(self):
        for path, fragment in self.wrong_files():
            for command in ("run", "simulate") if fragment == "truncated" else ("run",):
                with self.subTest(path=path.name, command=command):
                    process = self.start(command, {"data.train_images": path})
                    self.assert_complains(process, DATA, path, fragment, limit=20)
        self.assertFalse((self.folder / "runs").exists())

    def test_labels_that_do_not_fit_the_images_are_refused(self):
        process = self.start("run", {"data.train_labels": small_data()["data.test_labels"]})
        self.assert_complains(process, DATA, "500 labels", "2048")
        process = self.start("run", {"data.classes": 5})
        self.assert_complains(process, DATA, "label", "5 classes")
        process = self.start("run", {"data.batch": 1000})
        self.assert_complains(process, DATA, "data.batch", "data.keep_last")

    def test_a_model_that_is_missing_or_wrong_is_named(self):
        self.report_of("run", FAST | {"job.iterations": 2})
        model = self.folder / "runs" / "quickstart" / "model.safetensors"
        torn, text = self.folder / "torn.safetensors", self.folder / "text.safetensors"
        torn.write_bytes(model.read_bytes()[:-100])
        text.write_bytes(b"no tensors at all")
        for path, changes in (
                (self.folder / "missing", FAST), (torn, FAST), (text, FAST),
                (model, FAST | {"model.hidden": "[24, 24, 25]"})):
            with self.subTest(path=path.name, **changes):
                process = self.start("evaluate", changes, "--model", path)
                self.assert_complains(process, DATA, path)


class AddressMistakes(JobTest):
    def test_a_port_in_use_is_named_and_the_earlier_run_is_left_alone(self):
        job = self.start_live("ps", PAIR)
        before = contents(job.directory)
        for key, address in (("cluster.ps", job.ps), ("http.listen", job.endpoints["http"])):
            with self.subTest(key=key):
                process = self.start("ps", PAIR | {key: address})
                self.assert_complains(process, ADDRESS_IN_USE, address, limit=20)
        self.assertEqual(contents(job.directory), before)
        workers = [self.start_worker(job, rank) for rank in range(2)]
        for member in (*workers, job.process):
            self.assert_ends(member, 0)

    def test_a_run_whose_port_is_in_use_ends_with_the_same_code(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            address = f"127.0.0.1:{taken.getsockname()[1]}"
            process = self.start("run", PAIR | {"cluster.ps": address})
            self.assert_complains(process, ADDRESS_IN_USE, address, limit=20)

    def test_an_absent_ps_is_named_after_the_limit(self):
        address = f"127.0.0.1:{self.free_port()}"
        process = self.start("worker", PAIR | {"timeouts.join_s": 1}, "--ps", address, "--rank", 0)
        self.assert_complains(process, PS_LOST, address, "timeouts.join_s", "stagger ps", limit=20)

    def test_something_else_that_listens_is_no_ps(self):
        with socket.socket() as mute:
            mute.bind(("127.0.0.1", 0))
            mute.listen()
            address = f"127.0.0.1:{mute.getsockname()[1]}"
            process = self.start(
                "worker", PAIR | {"timeouts.worker_s": 2.5, "timeouts.warning_s": 1}, "--ps", address)
            self.assert_complains(process, PS_LOST, address, "hello", limit=20)


class RefusedWorkers(JobTest):
    def assert_refused(self, job, changes, *fragments, rank=1):
        words = []
        for key, value in changes.items():
            words += ["--set", f"{key}={value}"]
        process = self.launch(
            "worker", job.directory / "config.toml", "--ps", job.ps, "--rank", rank, *words)
        self.assert_complains(process, REFUSED, job.ps, *fragments, limit=20)

    def test_a_worker_that_does_not_fit_is_refused_and_the_run_is_unharmed(self):
        undisturbed = self.report_of("run", PAIR, directory="undisturbed")
        job = self.start_live("ps", PAIR)
        first = self.start_worker(job, 0)
        job.await_state(0, "joined")
        address = job.status()["workers"][0]["address"]
        table = [
            ({"model.hidden": "[24, 25, 24]"}, ["another model", "(25x24)", "(24x24)"]),
            ({"model.name": "lenet5"}, ["another model", "the PS has", "the worker"]),
            ({"optimizer.lr": 0.03}, ["other settings", "optimizer.lr = 0.02", "optimizer.lr = 0.03"]),
            ({"sync.period": 4}, ["other settings", "sync.period = 3", "sync.period = 4"]),
            ({"job.seed": 2}, ["other settings", "job.seed"]),
            ({"job.name": "other"}, ['job "other"', 'job "quickstart"']),
            ({"cluster.workers": 3}, ["cluster.workers is 3 at the worker and 2 at the PS"]),
        ]
        for changes, fragments in table:
            with self.subTest(**changes):
                self.assert_refused(job, changes, *fragments)
        self.assert_refused(job, {}, "rank 0 is held", address, "rank of its own", rank=0)
        second = self.start_worker(job, 1)
        for member in (first, second, job.process):
            self.assert_ends(member, 0)
        self.assertEqual(job.report()["parameters_sha256"], undisturbed["parameters_sha256"])

    def test_a_third_worker_without_a_rank_is_refused(self):
        job = self.start_live("ps", PAIR | {"job.iterations": 10_000_000})
        workers = [self.start_worker(job, rank) for rank in range(2)]
        job.await_iteration(1)
        process = self.launch("worker", job.directory / "config.toml", "--ps", job.ps)
        self.assert_complains(process, REFUSED, "all 2 ranks are taken", limit=20)
        self.assertTrue(all(worker.running() for worker in workers))


class DiskMistakes(JobTest):
    def test_a_directory_that_cannot_be_written_is_named(self):
        (self.folder / "file").write_text("not a directory")
        for directory in ("/proc/stagger", str(self.folder / "file" / "runs")):
            for command in ("run", "ps"):
                with self.subTest(directory=directory, command=command):
                    process = self.start(command, PAIR | {"job.directory": directory})
                    self.assert_complains(process, STORAGE, directory, limit=20)

    def test_a_full_disk_is_named_and_no_torn_result_is_left(self):
        if os.geteuid() != 0:
            self.skipTest("mounting a tiny file system takes root")
        tiny = self.folder / "tiny"
        tiny.mkdir()
        mounted = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=96k", "tmpfs", tiny], capture_output=True, text=True)
        if mounted.returncode != 0:
            self.skipTest(f"mount: {mounted.stderr.strip()}")
        self.addCleanup(subprocess.run, ["umount", "-l", tiny], check=False)
        job = LiveJob(
            self.start("run", {"job.directory": tiny, "job.iterations": 3}), tiny / "quickstart")
        self.assert_complains(job.process, STORAGE, "model.safetensors", "No space left", limit=30)
        self.assertFalse((job.directory / "model.safetensors").exists())
        self.assertFalse((job.directory / "report.json").exists())

    def test_a_second_run_keeps_the_first_ones_files(self):
        first = self.report_of("run", FAST | {"job.iterations": 2})
        directory = self.folder / "runs" / "quickstart"
        before = contents(directory)
        self.report_of("run", FAST | {"job.iterations": 3})
        self.assertEqual(contents(self.folder / "runs" / "quickstart.1"), before)
        self.assertEqual(first["iterations"], 2)
        self.assertIn(b'"iterations": 3', contents(directory)["report.json"])


if __name__ == "__main__":
    report.main()
