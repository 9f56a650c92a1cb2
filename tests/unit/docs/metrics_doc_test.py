#!/usr/bin/env python3
"""metrics_doc_test ROOT: docs/metrics.md has every counter of the code with its meaning, gives each a name of Prometheus's
kind that no other has, uses the labels that it explains, and says of what the files in sysfs are made."""

import pathlib
import re
import sys
import unittest

SOURCES = {"Lanes": ("src/core/counters.h", "VB_COUNTERS"), "Ports": ("src/port/port.h", "VB_PORT_COUNTERS"),
           "The connection manager": ("src/cm/cm.h", "VB_CM_COUNTERS")}
GAUGES = {"port_bottleneck_mean_bytes", "port_bottleneck_most_bytes"}  # lengths, which go down too
UNITS = {"LANE": "1", "LANE_DATA": "4 bytes", "PORT": "1"}


def counters_of(header, macro):
    """Of a list of the code: (enumerator, name, meaning) of each, in order."""
    table = (ROOT / header).read_text().split(f"#define {macro}(X)", 1)[1].split("\n\n", 1)[0].replace("\\\n", " ")
    return re.findall(r'X\((\w+),\s*"([^"]+)",\s*"([^"]+)"\)', table)


def sections_of(page):
    """Of each heading: the rows of the tables below it, as lists of cells, without the first two lines of a table."""
    sections, heading = {}, None
    for line in page.splitlines():
        if line.startswith("#"):
            heading = line.lstrip("# ")
            sections[heading] = []
        elif line.startswith("|"):
            sections[heading].append([cell.strip() for cell in line.strip("|").split("|")])
    return {heading: rows[2:] for heading, rows in sections.items()}


class MetricsTest(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.sections = sections_of((ROOT / "docs/metrics.md").read_text())
        self.rows = [row for heading in SOURCES for row in self.sections[heading]]

    def test_page__has_every_counter_and_its_meaning(self):
        for heading, source in SOURCES.items():
            expected = [(f"`{name}`", meaning) for _, name, meaning in counters_of(*source)]
            self.assertTrue(expected)
            self.assertEqual([(row[0], row[3]) for row in self.sections[heading]], expected)

    def test_metric__is_of_one_counter_or_told_apart_by_a_label(self):
        series = [(row[1], row[2]) for row in self.rows] + [(row[1], "") for row in self.sections["Peers and queue pairs"]]
        self.assertEqual(sorted(series), sorted(set(series)))
        several = {metric for metric, label in series if label}
        self.assertFalse({metric for metric, label in series if not label} & several)

    def test_metric__is_named_as_prometheus_wants(self):
        for counter, metric, *_ in self.rows:
            with self.subTest(metric=metric):
                self.assertRegex(metric, r"^`verbena_[a-z_]+`$")
                self.assertNotEqual(metric.endswith("_total`"), counter.strip("`") in GAUGES)
                self.assertEqual("bytes" in metric, "bytes" in counter)

    def test_labels__are_those_that_are_explained(self):
        explained = {row[0].strip("`") for row in self.sections["In Prometheus"]}
        used = {label for row in self.rows for label in re.findall(r'`(\w+)="', row[2])}
        used |= {label for row in self.sections["Peers and queue pairs"] for label in re.findall(r"`(\w+)`", row[2])}
        self.assertEqual(used | {"device", "port"}, explained)

    def test_page__says_of_what_each_file_in_sysfs_is_made(self):
        names = {("PORT" if heading == "Ports" else "LANE", enumerator): name
                 for heading in ("Lanes", "Ports") for enumerator, name, _ in counters_of(*SOURCES[heading])}
        table = (ROOT / "src/host/devices/port_counters.c").read_text()
        expected = []
        for file, source, first, second in re.findall(r'\{ "(\S+)", (\w+), VB_(\w+), (\S+) \}', table):
            kind, prefix = ("PORT", "PORT_") if source == "PORT" else ("LANE", "")
            parts = [first] if second == "-1" else [first, second.removeprefix("VB_")]
            made_of = " + ".join(f"`{names[kind, part.removeprefix(prefix)]}`" for part in parts)
            expected.append([f"`{file}`", made_of, UNITS[source]])
        self.assertEqual(len(expected), len(re.findall(r'^\t\{ "', table, re.M)))
        self.assertEqual(self.sections["In sysfs"], expected)


if __name__ == "__main__":
    ROOT = pathlib.Path(sys.argv[1]).resolve()
    unittest.main(argv=sys.argv[:1])
