"""A link that nobody has described: measured by a run, asked for by a plan."""

import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import report
from stagger import FAST, JobTest, http

SHORT = FAST | {"job.iterations": 20}


class Link(JobTest):
    def test_a_run_measures_it_where_a_planner_goes_by_it(self):
        ended = self.report_of("run", SHORT | {"groups.planner": "optimal"})
        self.assertTrue(ended["link"]["measured"])
        self.assertGreater(ended["link"]["rate_bits_per_second"], 1e6)
        self.assertGreaterEqual(ended["link"]["start_us"], 0)
        self.assertEqual(ended["iterations"], 20)

    def test_a_run_goes_by_what_the_config_says(self):
        ended = self.report_of("run", SHORT | {
            "groups.planner": "mg_wfbp", "link.rate_bits_per_second": "1e9", "link.start_us": 30})
        self.assertEqual(
            ended["link"], {"rate_bits_per_second": 1e9, "start_us": 30, "measured": False})

    def test_a_run_that_needs_none_knows_none(self):
        self.assertIsNone(self.report_of("run", SHORT)["link"])

    def test_the_period_follows_what_is_measured_until_somebody_sets_it(self):
        job = self.start_live("run", FAST | {
            "job.iterations": 10_000_000, "sync.period": "auto", "timeouts.heartbeat_s": 0.1})
        job.await_iteration(20)
        self.assertGreater(job.scrape()["stagger_link_rate_bytes_per_second"][""], 1e5)
        self.assertTrue(json.loads(job.get("/v1/period")[2])["auto"])
        status, _, text = http(job.endpoints["http"], "/v1/period", "PUT", '{"period": 4}')
        self.assertEqual(status, 200, text)
        self.assertEqual(json.loads(text)["auto"], "off for the rest of the run")
        now = json.loads(job.get("/v1/period")[2])
        self.assertEqual((now["period"], now["auto"]), (4, False))

    def test_a_plan_asks_for_it(self):
        for key, value in (("groups.planner", "optimal"), ("sync.period", "auto"), ("slots.rule", "measured")):
            with self.subTest(key=key):
                self.assert_complains(
                    self.start("plan", {key: value}), 2, key, "--bandwidth 1gbit",
                    "link.rate_bits_per_second")


if __name__ == "__main__":
    report.main()
