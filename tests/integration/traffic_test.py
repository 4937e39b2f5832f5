"""The bytes of a run are those that its plan's due table promises, no more and no fewer."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import report
from stagger import JobTest, due

SHORT = {"job.iterations": 12, "data.batch": 8}
WORKERS = 4


class Traffic(JobTest):
    def run_with_plan(self, changes):
        """The report of a run, and the bytes of its groups with the iterations of a period in which they are due."""
        name = "-".join(str(value) for value in changes.values())
        ended = self.report_of("run", SHORT | changes, directory=name)
        plan = self.report_of("plan", SHORT | changes)
        self.assertEqual(len(plan["groups"]), ended["groups"])
        return ended, plan

    def promised(self, plan, final_round=True):
        iterations = SHORT["job.iterations"]
        per_worker = 0
        for group in plan["groups"]:
            times = sum(1 for j in range(1, iterations + 1)
                        if (j - 1) % plan["period"] + 1 in group["due"])
            per_worker += group["bytes"] * (times + final_round)
        return per_worker * WORKERS

    def assert_traffic(self, ended, promised):
        self.assertEqual(ended["bytes_pushed"], promised)
        self.assertEqual(ended["bytes_pulled"], promised)

    def test_interleaved_runs_move_what_the_due_table_says(self):
        for period in (1, 3, 5, 40):
            with self.subTest(period=period):
                ended, plan = self.run_with_plan({"sync.period": period})
                for group in plan["groups"]:
                    expected = [j for j in range(1, period + 1)
                                if due(len(plan["groups"]), period, group["index"], j)]
                    self.assertEqual(group["due"], expected)
                    self.assertEqual(len(expected), 1)
                self.assert_traffic(ended, self.promised(plan))

    def test_a_period_of_three_moves_a_third_of_what_bsp_moves_beside_the_final_round(self):
        bsp, plan = self.run_with_plan({"sync.strategy": "bsp", "sync.period": 1})
        whole = sum(group["bytes"] for group in plan["groups"]) * WORKERS
        self.assert_traffic(bsp, whole * SHORT["job.iterations"])
        third, _ = self.run_with_plan({"sync.period": 3})
        self.assertEqual(3 * (third["bytes_pushed"] - whole), bsp["bytes_pushed"])

    def test_other_strategies_move_everything_together(self):
        for strategy in ("easgd", "local_sgd", "diloco"):
            with self.subTest(strategy=strategy):
                ended, plan = self.run_with_plan({"sync.strategy": strategy, "sync.period": 5})
                self.assertEqual({tuple(group["due"]) for group in plan["groups"]}, {(5,)})
                self.assert_traffic(ended, self.promised(plan))

    def test_a_run_without_the_final_round_moves_that_much_less(self):
        ended, plan = self.run_with_plan({"sync.period": 3, "sync.final_round": False})
        self.assert_traffic(ended, self.promised(plan, final_round=False))

    def test_chunks_and_groups_of_odd_sizes_are_counted_without_their_padding(self):
        ended, plan = self.run_with_plan({
            "model.name": "mlp", "model.hidden": "[7, 5, 3]", "groups.planner": "layerwise",
            "wire.chunk_bytes": 4096})
        self.assertEqual([group["bytes"] for group in plan["groups"]], [160, 72, 160, 21980])
        self.assert_traffic(ended, self.promised(plan))


if __name__ == "__main__":
    report.main()
