"""Where the shipped files are, and what the table of metric names says."""
import pathlib
import re
import shutil
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROMETHEUS = ROOT / "deploy" / "prometheus"
DASHBOARD = ROOT / "deploy" / "grafana" / "hotlane.json"
SKIPPED = 77

ENTRY = re.compile(r'metric_name \w+\{"([^"]+)", k::(\w+), "([^"]*)", "[^"]+"\}')


def metric_table():
    """name -> (kind, labels) from metrics/names.hpp."""
    text = (ROOT / "metrics" / "names.hpp").read_text()
    found = {m[1]: (m[2], tuple(filter(None, m[3].split(",")))) for m in ENTRY.finditer(text)}
    assert len(found) == text.count("inline constexpr metric_name "), "names.hpp has a new shape"
    return found


def series_table():
    """Every series name that can be queried -> (kind, labels)."""
    out = {}
    for name, (kind, labels) in metric_table().items():
        if kind == "histogram":
            out[name + "_bucket"] = ("counter", labels + ("le",))
            out[name + "_sum"] = ("counter", labels)
            out[name + "_count"] = ("counter", labels)
        else:
            out[name] = (kind, labels)
    return out


def names_in(expression):
    """Metric names of ours in a PromQL expression (texts in quotes left out)."""
    bare = re.sub(r'"[^"]*"', '""', expression)
    return set(re.findall(r"(?<![\w:])(?:hotlane|process)_\w+", bare))


def selectors_in(expression):
    """(name, label, value) of every matcher that stands behind one of our metrics."""
    for name, inside in re.findall(r"((?:hotlane|process)_\w+)\{([^}]*)\}", expression):
        for label, value in re.findall(r'(\w+)\s*(?:=~|!~|!=|=)\s*"([^"]*)"', inside):
            yield name, label, value


def main(*tools):
    missing = [t for t in tools if shutil.which(t) is None]
    if missing:
        print("not installed:", *missing)
        sys.exit(SKIPPED)
    unittest.main()
