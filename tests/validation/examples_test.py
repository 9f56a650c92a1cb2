#!/usr/bin/env python3
"""examples_test: examples.py sees a hash that differs, a scenario that the table does not have, and a run that fails."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

PROGRAM = pathlib.Path(__file__).resolve().parent / "examples.py"
# Stands in for `verbena sim FILE --json ... --threads N`: the scenario is the answer, a line a number of threads.
VERBENA = """#!/bin/sh
for last; do :; done
[ -s "$2" ] || { echo "empty" >&2; exit 2; }
printf '{"result_hash": "%s"}\\n' "$(sed -n "$last{p;q};\\${p}" "$2")"
"""


class Examples(unittest.TestCase):
    def run_on(self, scenarios, table, *arguments):
        with tempfile.TemporaryDirectory() as scratch:
            folder = pathlib.Path(scratch)
            for name, text in scenarios.items():
                (folder / name).write_text(text)
            (folder / "verbena").write_text(VERBENA)
            (folder / "verbena").chmod(0o755)
            (folder / "table").write_text(table)
            done = subprocess.run([sys.executable, PROGRAM, "--verbena", folder / "verbena", "--examples", folder, "--table",
                                   folder / "table", *arguments], text=True, stdout=subprocess.PIPE)
            return done.returncode, done.stdout.split("\n"), (folder / "table").read_text().split("\n")[1:-1]

    def test_same_hashes__pass(self):
        self.assertEqual(self.run_on({"a.yaml": "12\n", "b.yaml": "34\n"}, "# of\na.yaml\t12\nb.yaml\t34\n")[:2],
                         (0, ["", "2 passed, 0 failed, 0 skipped", ""]))

    def test_another_hash__is_told_with_both(self):
        status, said, _ = self.run_on({"a.yaml": "12\n34\n"}, "a.yaml\t12\n")
        self.assertEqual((status, said[:2]), (1, ["a.yaml with 2 threads: the table has 12, the run gave 34",
                                                  "0 passed, 1 failed, 0 skipped"]))

    def test_failure__is_told(self):
        self.assertIn("the run gave status 2: empty", self.run_on({"a.yaml": ""}, "a.yaml\t12\n")[1][0])

    def test_listing__is_held_both_ways(self):
        status, said, _ = self.run_on({"a.yaml": "12\n"}, "b.yaml\t12\n")
        self.assertEqual((status, said[:2]), (1, ["a.yaml is not in the table", "b.yaml is in the table, but not in examples/"]))

    def test_large__is_run_when_all_are(self):
        scenarios, table = {"permutation-8192.yaml": "56\n", "a.yaml": "12\n"}, "a.yaml\t12\npermutation-8192.yaml\t78\n"
        self.assertEqual(self.run_on(scenarios, table)[0], 0)
        self.assertEqual(self.run_on(scenarios, table, "--all")[0], 1)

    def test_write__keeps_what_was_not_run_and_refuses_what_threads_change(self):
        scenarios = {"permutation-8192.yaml": "", "a.yaml": "12\n", "b.yaml": "1\n2\n"}
        status, _, written = self.run_on(scenarios, "permutation-8192.yaml\t78\ngone.yaml\t1\n", "--write")
        self.assertEqual((status, written), (1, ["a.yaml\t12", "permutation-8192.yaml\t78"]))


if __name__ == "__main__":
    unittest.main()
