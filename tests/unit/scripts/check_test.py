#!/usr/bin/env python3
"""check_test ROOT: the end of what scripts/check prints names each failure, and what was said of it."""

import contextlib
import importlib.machinery
import importlib.util
import io
import pathlib
import sys
import unittest

CMOCKA = "\n".join(["[ RUN      ] a__passes", "no error here", "[       OK ] a__passes"] * 40 +
                   ["[ RUN      ] b__fails", "[  ERROR   ] --- 1 != 0", "[   LINE   ] --- b.c:7: error: Failure!",
                    "[  FAILED  ] b__fails"] + ["[       OK ] c__passes"] * 200)
THREADS = "\n".join(["ok"] * 30 + ["parts__well", "  passed, 0.1 s", "meets__nobody", "x.c:9: it hangs", "  failed, 2.00 s",
                                   "1 passed, 1 failed, 0 skipped"])


class Check(unittest.TestCase):
    check = None

    def printed(self, *failures):
        tally = self.check.Tally()
        for name, output in failures:
            tally.fail(name, output)
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            self.check.print_failures(tally)
        return out.getvalue().splitlines()

    def test_first_failure_of_a_long_output__is_said(self):
        lines = self.printed(("unit/b (fail)", CMOCKA))
        self.assertIn("   [   LINE   ] --- b.c:7: error: Failure!", lines)
        self.assertLess(len(lines), 20)
        self.assertEqual(lines[-1], "FAILED: unit/b (fail)")

    def test_words_of_tests_that_pass__are_not_taken_for_it(self):
        self.assertIn("   x.c:9: it hangs", self.printed(("threads/x (fail)", "error: expected\n" + THREADS)))

    def test_output_without_a_word_of_failure__ends_what_is_said(self):
        self.assertIn("   [ RUN ] hangs", self.printed(("a (timeout)", "fine\n" * 99 + "[ RUN ] hangs\n")))

    def test_many_failures__are_all_named_and_few_said_more_of(self):
        lines = self.printed(*[(f"t{i}", CMOCKA) for i in range(40)])
        self.assertEqual(lines[-40:], [f"FAILED: t{i}" for i in range(40)])
        self.assertLess(len(lines), 200)

    def test_each_part_of_one_output__has_its_own_lines(self):
        tally = self.check.Tally()
        self.check.fail_each(tally, ["one", "two"], "FAILED  one\n    this\n" + "\n" * 9 + "FAILED  two\n    that\n")
        self.assertEqual([said[1] for _, said in tally.failures], ["    this", "    that"])


if __name__ == "__main__":
    path = pathlib.Path(sys.argv[1]) / "scripts" / "check"
    loader = importlib.machinery.SourceFileLoader("check", str(path))
    sys.dont_write_bytecode = True
    Check.check = importlib.util.module_from_spec(importlib.util.spec_from_loader("check", loader))
    loader.exec_module(Check.check)
    unittest.main(argv=sys.argv[:1])
