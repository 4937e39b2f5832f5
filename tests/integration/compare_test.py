"""`stagger compare`: rows of runs over loopback and in the simulator, refusals as rows, and nothing left running."""

import json
import pathlib
import signal
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import report
from stagger import SOURCE, JobTest, LIMIT, processes_of, wait_until

REPLAY = SOURCE / "configs" / "replay.toml"
USAGE, DATA = 2, 3
SHORT = {"job.iterations": 6, "backend.bytes_scale": 0.002, "backend.time_scale": 0.02, "cluster.workers": 2}


class Compare(JobTest):
    def compare(self, *words, changes=None):
        settings = SHORT | {"job.directory": self.folder / "runs"} | (changes or {})
        sets = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
        return self.launch("compare", REPLAY, *sets, *words)

    def rows(self, *words, changes=None):
        process = self.compare("--json", *words, changes=changes)
        self.assert_ends(process, 0, 2 * LIMIT)
        return json.loads(process.out)

    def check_row(self, row):
        self.assertIsNone(row["why_not"], row)
        for key in ("iteration_us", "speed_up", "bytes_pushed", "pushes_in_flight_max", "push_p50_us"):
            self.assertGreater(row[key], 0, key)
        self.assertGreaterEqual(row["push_p99_us"], row["push_p50_us"])

    def test_runs_over_loopback_one_after_another(self):
        rows = self.rows("--strategies", "easgd,interleaved", "--periods", "1", "--admissions", "grants")
        self.assertEqual([row["strategy"] for row in rows], ["easgd", "interleaved"])
        for row in rows:
            self.check_row(row)
            self.assertIsNone(row["predicted_iteration_us"])  # nobody said what loopback's rate is
        self.assertEqual(rows[0]["speed_up"], 1)
        folder = self.folder / "runs" / "replay-compare"
        self.assertEqual(json.loads((folder / "compare.json").read_text()), rows)
        report = json.loads((folder / "runs" / "easgd-T1-grants" / "report.json").read_text())
        self.assertEqual(report["admission"], "grants")
        self.assertEqual(report["iteration_us"]["mean"], rows[0]["iteration_us"])

    def test_predicts_where_the_link_is_known(self):
        (row,) = self.rows("--strategies", "interleaved", "--periods", "3", "--admissions", "none",
                           changes={"link.rate_bits_per_second": 1e9})
        self.assertGreater(row["predicted_iteration_us"], 0)
        self.assertAlmostEqual(row["predicted_per_measured"] * row["iteration_us"],
                               row["predicted_iteration_us"])

    def test_simulates_the_same_and_twice_alike(self):
        words = ["--simulated", "--bandwidth", "1e8", "--strategies", "bsp,interleaved",
                 "--periods", "1,3", "--admissions", "none,slots+grants"]
        rows = self.rows(*words)
        self.assertEqual(len(rows), 6)  # bsp has one period
        for row in rows:
            self.check_row(row)
            self.assertGreater(row["predicted_iteration_us"], 0)
        self.assertEqual(self.rows(*words), rows)
        self.assertFalse((self.folder / "runs").exists())

    def test_what_a_config_refuses_is_a_row_with_the_reason(self):
        for mode in ("--measured", "--simulated"):
            with self.subTest(mode=mode):
                refused, ran = self.rows(
                    mode, "--strategies", "local_sgd,easgd", "--periods", "1", "--admissions", "none",
                    changes={"sync.alpha": 0.3})
                self.assertIn("refused: ", refused["why_not"])
                self.assertIn("local_sgd", refused["why_not"])
                self.assertIsNone(refused["iteration_us"])
                self.check_row(ran)

    def test_mistakes_are_one_line(self):
        table = [
            (USAGE, ["--strategies", "esgd"], {}, ["--strategies", "esgd"]),
            (USAGE, ["--admissions", "slot"], {}, ["--admissions", "slot"]),
            (USAGE, ["--periods", "0"], {}, ["--periods", "0"]),
            (USAGE, [], {"sync.perid": 3}, ["sync.perid", "sync.period"]),
            (DATA, [], {"backend.profile": "resnet51"}, ["resnet51"]),
        ]
        for code, words, changes, fragments in table:
            with self.subTest(words=words, changes=changes):
                self.assert_complains(self.compare(*words, changes=changes), code, *fragments)
        both = self.compare("--measured", "--simulated")
        self.assert_ends(both, USAGE)
        self.assertIn("--simulated", both.err)
        self.assertFalse((self.folder / "runs").exists())

    def test_ctrl_c_ends_the_run_under_way_and_begins_no_other(self):
        process = self.compare("--json", "--strategies", "easgd,interleaved", "--periods", "1",
                               "--admissions", "none", changes={"job.iterations": 10_000_000})
        first = self.folder / "runs" / "replay-compare" / "runs" / "easgd-T1-none"
        wait_until(lambda: (first / "endpoints.json").exists(), "the first run has begun")
        process.signal(signal.SIGINT)
        self.assert_ends(process, 0)
        self.assertEqual([row["why_not"] for row in json.loads(process.out)],
                         ["stopped", "not run: stopped before"])
        self.assertEqual(processes_of(self.folder), {})


if __name__ == "__main__":
    report.main()
