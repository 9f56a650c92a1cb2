"""The runner's own tests: on a program that talks as gtest does, whose tests pass, fail, skip, hang and crash."""

import contextlib
import io
import pathlib
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True

import run
import fabtests
import gtest
from places import Place

PROGRAM = r'''#!/usr/bin/env python3
import os, sys, time
TESTS = "a_passes b_fails c_skips d_hangs e_crashes f_passes".split()
if sys.argv[1] == "--gtest_list_tests":
    print("rc/made.\n  " + "  # GetParam() = rc/vb:1\n  ".join(TESTS))
    sys.exit(0)
for name in sys.argv[1].partition("=")[2].split(":"):
    print(f"[ RUN      ] {name} <rc/vb:1>", flush=True)
    if "fails" in name:
        print(f"made.cc:1: Failure\n[  FAILED  ] {name} (0 ms)", flush=True)
        continue
    if "skips" in name:
        print("[     SKIP ] (for want of it)")
    if "hangs" in name:
        time.sleep(60)
    if "crashes" in name:
        os.abort()
    print(f"[       OK ] {name} (0 ms)", flush=True)
'''


class Here(Place):
    """No namespace, no Verbena."""

    def __init__(self):
        super().__init__([], "here", "no-launcher", "vb_lo", "127.0.0.1", "::1")

    def command(self, arguments, user="root", through_verbena=True):
        return list(arguments)


class Gtest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="verbena-")
        self.addCleanup(folder.cleanup)
        program = pathlib.Path(folder.name) / "gtest"
        program.write_text(PROGRAM)
        program.chmod(0o755)
        self.suite = gtest.Suite(program, Here(), seconds=2)

    def results(self):
        return list(self.suite.run(self.suite.names(None)))

    def test_a_death_costs_the_test_that_died(self):
        found = self.results()
        self.assertEqual([(entry.name.split("_")[-1], entry.result) for entry in found],
                         [("passes", "passed"), ("fails", "failed"), ("skips", "skipped"), ("hangs", "failed"),
                          ("crashes", "failed"), ("passes", "passed")])
        whys = {entry.name: entry.why for entry in found}
        self.assertEqual(whys["rc/made.c_skips"], "for want of it")
        self.assertIn("made.cc:1: Failure", whys["rc/made.b_fails"])
        self.assertIn("hang: nothing for 2 s", whys["rc/made.d_hangs"])
        self.assertIn("SIGABRT", whys["rc/made.e_crashes"])

    def test_what_is_listed_is_expected_and_must_fail(self):
        rules = [run.Rule("*_hangs", "ours", "slow"), run.Rule("*_crashes", "theirs", "old"), run.Rule("*_passes", "ours", "x")]
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            self.assertEqual(run.summarise(self.results(), rules, is_whole=True), 2)
        self.assertIn("FAILED: rc/made.b_fails", printed.getvalue())
        self.assertIn("FAILED: *_passes is listed and passes", printed.getvalue())
        self.assertIn("failed 1 as listed (ours): slow", printed.getvalue())
        self.assertIn("2 passed, 3 failed, 1 skipped", printed.getvalue())


class Fabtests(unittest.TestCase):
    def test_results(self):
        text = "- name:   fi_rdm -p \"verbs\"\n  timestamp: 1\n  result: Pass\n  time:   0\n" \
               "- name:   fi_msg\n  result: Fail\n  server_stdout: |\n    broken\n- name:   fi_poll\n  result: Notrun\n"
        found = fabtests.parse_results(text)
        self.assertEqual([entry.result for entry in found], ["passed", "failed", "skipped"])
        self.assertIn("broken", found[1].why)


class Lists(unittest.TestCase):
    def test_the_lists_can_be_read(self):
        for suite in run.PACKAGES:
            run.read_rules(run.HERE / f"{suite}.tsv")


if __name__ == "__main__":
    unittest.main()
