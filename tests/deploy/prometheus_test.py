"""The shipped rules are valid, fire when they should, and name what exists."""
import subprocess
import unittest

import yaml

import shipped

RULES = shipped.PROMETHEUS / "hotlane.rules.yaml"
TESTS = shipped.PROMETHEUS / "hotlane.test.yaml"
ALERTMANAGER = shipped.PROMETHEUS / "alertmanager.example.yaml"


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, cwd=shipped.PROMETHEUS, timeout=60)
    return done.returncode, done.stdout + done.stderr


def rules(kind):
    groups = yaml.safe_load(RULES.read_text())["groups"]
    return [r for g in groups for r in g["rules"] if kind in r]


class Rules(unittest.TestCase):
    def test_promtool_accepts_them(self):
        code, said = run("promtool", "check", "rules", "--lint=all", "--lint-fatal", RULES.name)
        self.assertEqual(code, 0, said)

    def test_promtool_tests_pass(self):
        code, said = run("promtool", "test", "rules", TESTS.name)
        self.assertEqual(code, 0, said)

    def test_the_example_scrape_is_accepted(self):
        code, said = run("promtool", "check", "config", "prometheus.example.yaml")
        self.assertEqual(code, 0, said)

    def test_every_alert_fires_and_is_silent_in_a_test(self):
        fires, silent = set(), set()
        for test in yaml.safe_load(TESTS.read_text())["tests"]:
            for check in test.get("alert_rule_test", []):
                (fires if check["exp_alerts"] else silent).add(check["alertname"])
        alerts = {r["alert"] for r in rules("alert")}
        self.assertEqual(fires, alerts)
        self.assertEqual(silent, alerts)

    def test_every_alert_says_how_bad_what_and_where_to_read_on(self):
        for rule in rules("alert"):
            with self.subTest(rule["alert"]):
                self.assertIn(rule["labels"]["severity"], ("page", "ticket"))
                for key in ("summary", "description", "runbook_url"):
                    self.assertTrue(rule["annotations"].get(key))
                self.assertEqual(
                    rule["annotations"]["runbook_url"], "README.md#" + rule["alert"].lower())

    def test_every_name_and_label_exists(self):
        series = shipped.series_table()
        for rule in rules("expr"):
            with self.subTest(rule.get("alert") or rule.get("record")):
                self.assertLessEqual(shipped.names_in(rule["expr"]), set(series))
                for name, label, _ in shipped.selectors_in(rule["expr"]):
                    self.assertIn(label, series[name][1])
        for test in yaml.safe_load(TESTS.read_text())["tests"]:
            for given in test["input_series"]:
                for name, label, _ in shipped.selectors_in(given["series"]):
                    self.assertIn(label, series[name][1] + ("job", "instance"))


class Alertmanager(unittest.TestCase):
    def test_amtool_accepts_the_example(self):
        code, said = run("amtool", "check-config", ALERTMANAGER.name)
        self.assertEqual(code, 0, said)

    def test_severity_leads_to_the_right_receiver(self):
        receivers = {"page": "on-call", "ticket": "tickets"}
        for rule in rules("alert"):
            severity = rule["labels"]["severity"]
            with self.subTest(rule["alert"]):
                code, said = run(
                    "amtool", "config", "routes", "test",
                    f"--config.file={ALERTMANAGER.name}",
                    f"--verify.receivers={receivers[severity]}",
                    f"alertname={rule['alert']}", f"severity={severity}", "tool=counter")
                self.assertEqual(code, 0, said)


if __name__ == "__main__":
    shipped.main("promtool", "amtool")
