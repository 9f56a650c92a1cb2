"""The runner's own tests: on a program that talks as gtest does, and on some that end as fabtests do, whose tests pass, fail,
skip, hang and crash."""

import contextlib
import io
import pathlib
import sys
import tempfile
import unittest
import unittest.mock

sys.dont_write_bytecode = True

import run
import fabtests
import gtest
from places import Path, Place

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
    """On programs that end as their name says, each with the status of its first letters."""

    SCRIPT = """#!/bin/bash
unit_tests=(
	"fi_0 -s SERVER_ADDR GOOD_ADDR"
	"fi_61"
)
neg_unit_tests=(
	"fi_0 g00n13s"
	"fi_61 g00n13s"
)
functional_tests=(
	"fi_0 -e msg"
	"fi_38"
	"fi_5"
	"fi_hang"
	"fi_0 -e dgram"
)
complex_tests=(
	"fi_uber"
)
prov_efa_tests=( \\
	"fi_efa"
)
"""
    PROGRAM = """#!/usr/bin/env python3
import sys, time
name = sys.argv[0].rpartition("fi_")[2]
if name == "hang":
    time.sleep(60)
if name == "uber":
    print("Success: 3\\nERROR: 1")
sys.exit(int(name) if name.isdigit() else 0)
"""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="verbena-")
        self.addCleanup(folder.cleanup)
        prefix = pathlib.Path(folder.name)
        (prefix / "bin").mkdir()
        (prefix / "bin/runfabtests.sh").write_text(self.SCRIPT)
        for name in ("0", "61", "38", "5", "hang", "uber"):
            (prefix / "bin" / f"fi_{name}").write_text(self.PROGRAM)
            (prefix / "bin" / f"fi_{name}").chmod(0o755)
        for name in ("verbs", "ofi_rxm", "ofi_rxd"):
            (prefix / "share/fabtests/test_configs" / name).mkdir(parents=True)
            (prefix / "share/fabtests/test_configs" / name / f"{name}.exclude").write_text("# a comment\n\n-e dgram\n")
        here = unittest.mock.patch.object(fabtests, "SERVER_STARTS", 0)
        here.start()
        self.addCleanup(here.stop)
        self.suite = fabtests.Suite(prefix, {"host": Path("host", Here(), Here(), 1024)}, seconds=1)

    def results(self, wanted):
        return {entry.name.partition(": ")[2]: entry for entry in self.suite.run(self.suite.names(wanted))}

    def test_names_are_those_of_its_quick_sets(self):
        names = self.suite.names(None)
        self.assertEqual(len(names), 3 * 9)
        self.assertIn("host verbs;ofi_rxm functional: fi_0 -e msg", names)
        self.assertEqual(self.suite.names("verbs complex"), ["host verbs complex: fi_uber"])

    def test_a_status_decides(self):
        found = self.results("verbs functional")
        self.assertEqual({name: entry.result for name, entry in found.items()},
                         {"fi_0 -e msg": "passed", "fi_38": "skipped", "fi_5": "failed", "fi_hang": "failed",
                          "fi_0 -e dgram": "skipped"})
        self.assertIn("status 5, status 5", found["fi_5"].why)
        self.assertIn("hang, hang", found["fi_hang"].why)
        self.assertEqual(found["fi_0 -e dgram"].why, "libfabric's verbs.exclude names it")
        self.assertEqual([entry.result for entry in self.results("verbs unit").values()], ["passed", "skipped"])

    def test_what_is_started_to_fail_must(self):
        self.assertEqual([entry.result for entry in self.results("verbs neg_unit").values()], ["failed", "passed"])

    def test_cases_that_failed_are_counted(self):
        found = self.results("verbs complex")["fi_uber"]
        self.assertEqual((found.result, found.why.splitlines()[0]), ("failed", "1 of its cases failed, 3 passed"))


class Lists(unittest.TestCase):
    def test_the_lists_can_be_read(self):
        for suite in run.PACKAGES:
            run.read_rules(run.HERE / f"{suite}.tsv")


if __name__ == "__main__":
    unittest.main()
