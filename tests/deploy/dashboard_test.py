"""The shipped dashboard: classic JSON, stable, readable, and every expression is real PromQL about
metrics that exist."""
import json
import pathlib
import re
import subprocess
import tempfile
import unittest

import shipped

VARIABLES = {
    "$__rate_interval": "5m", "$job": ".*", "$instance": ".*", "$tool": ".*",
}
STAGES = ("watching", "flagged", "sharding", "remeasuring", "would_move", "moving_out",
          "on_postgres", "would_return", "moving_back")


def filled(expression):
    for name, value in VARIABLES.items():
        expression = expression.replace(name, value)
    return expression


class Dashboard(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.board = json.loads(shipped.DASHBOARD.read_text())
        cls.panels = [p for p in cls.board["panels"] if p["type"] != "row"]
        cls.expressions = {
            f"{p['title']} {t['refId']}": t["expr"] for p in cls.panels for t in p["targets"]}
        for note in cls.board["annotations"]["list"]:
            cls.expressions["annotation " + note["name"]] = note["expr"]

    def test_it_is_stable_and_classic(self):
        self.assertEqual(self.board["uid"], "hotlane")
        self.assertTrue(36 <= self.board["schemaVersion"] <= 39)
        self.assertFalse(self.board["editable"])
        self.assertIsNone(self.board["id"])
        names = [v["name"] for v in self.board["templating"]["list"]]
        self.assertEqual(names, ["datasource", "job", "instance", "tool"])
        ids = [p["id"] for p in self.board["panels"]]
        self.assertEqual(len(ids), len(set(ids)))

    def test_every_panel_explains_itself(self):
        for p in self.panels:
            with self.subTest(p["title"]):
                self.assertTrue(p["description"])
                self.assertTrue(p["fieldConfig"]["defaults"]["unit"])
                self.assertEqual(p["datasource"]["uid"], "${datasource}")
                for t in p["targets"]:
                    self.assertEqual(t["datasource"]["uid"], "${datasource}")

    def test_panels_do_not_overlap(self):
        taken = set()
        for p in self.board["panels"]:
            g = p["gridPos"]
            self.assertLessEqual(g["x"] + g["w"], 24)
            cells = {(x, y) for x in range(g["x"], g["x"] + g["w"])
                     for y in range(g["y"], g["y"] + g["h"])}
            self.assertFalse(cells & taken, p["title"])
            taken |= cells

    def test_promtool_parses_every_expression(self):
        rules = [{"record": f"check:expression:{i}", "expr": filled(e)}
                 for i, e in enumerate(self.expressions.values())]
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "expressions.yaml"
            path.write_text(json.dumps({"groups": [{"name": "dashboard", "rules": rules}]}))
            done = subprocess.run(["promtool", "check", "rules", "--lint=none", str(path)],
                                  capture_output=True, text=True, timeout=60)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_no_variable_is_left(self):
        for where, expression in self.expressions.items():
            self.assertNotIn("$", filled(expression), where)

    def test_every_metric_and_label_exists(self):
        series = shipped.series_table()
        for where, expression in self.expressions.items():
            with self.subTest(where):
                self.assertTrue(shipped.names_in(expression))
                self.assertLessEqual(shipped.names_in(expression), set(series))
                for name, label, _ in shipped.selectors_in(expression):
                    self.assertIn(label, series[name][1] + ("job", "instance"))

    def test_counters_only_under_a_rate(self):
        series = shipped.series_table()
        for where, expression in self.expressions.items():
            for name in shipped.names_in(expression):
                if series[name][0] != "counter":
                    continue
                uses = re.findall(r"(\w+)\(" + name + r"\b", expression)
                self.assertTrue(uses and set(uses) <= {"rate", "increase"}, (where, name))

    def test_every_legend_names_a_label(self):
        series = shipped.series_table()
        known = {label for _, labels in series.values() for label in labels} | {"job", "instance"}
        for p in self.panels:
            for t in p["targets"]:
                self.assertLessEqual(set(re.findall(r"\{\{(\w+)\}\}", t["legendFormat"])), known)

    def test_the_timeline_knows_every_stage(self):
        header = (shipped.ROOT / "policy" / "types.hpp").read_text()
        body = re.search(r"enum class stage[^{]*\{(.*?)\};", header, re.S)[1]
        self.assertEqual(tuple(re.findall(r"^\s*(\w+),", body, re.M)), STAGES)
        panel = next(p for p in self.panels if p["title"] == "Stage of the runbook")
        texts = panel["fieldConfig"]["defaults"]["mappings"][0]["options"]
        self.assertEqual(tuple(texts[str(i)]["text"] for i in range(len(STAGES))), STAGES)

    def test_every_signal_is_shown_against_its_thresholds(self):
        for signal in ("handoff_ratio", "mean_wait_seconds", "abort_ratio", "conflict_ratio"):
            self.assertTrue(any(f'signal="{signal}"' in e for e in self.expressions.values()), signal)


if __name__ == "__main__":
    shipped.main("promtool")
