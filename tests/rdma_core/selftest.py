"""The runner's own tests: on a suite made for them, whose tests pass, fail, skip, hang and crash."""

import collections
import contextlib
import io
import pathlib
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True

import run
from places import Place

SUITE = '''
import os, time, unittest

class Case(unittest.TestCase):
    def test_a_passes(self): pass
    def test_b_fails(self): self.fail("on purpose")
    def test_c_skips(self): self.skipTest("for want of it")
    def test_d_hangs(self): time.sleep(60)
    def test_e_crashes(self): os.abort()
    def test_f_passes_after_all(self): pass

class TearDownFails(unittest.TestCase):
    def tearDown(self): raise OSError("late")
    def test_passes(self): pass

class SetUpClassFails(unittest.TestCase):
    @classmethod
    def setUpClass(cls): raise OSError("early")
    def test_is_never_run(self): pass
'''


def run_suite(folder):
    """Results of SUITE, run without Verbena: the launcher does nothing."""
    folder = pathlib.Path(folder)
    (folder / "tests").mkdir()
    (folder / "tests/test_made.py").write_text(SUITE)
    (folder / "tests/__init__.py").touch()
    (folder / "tests/args_parser.py").write_text("class parser:\n    parse_args = staticmethod(lambda: None)\n")
    launcher = folder / "launcher"
    launcher.write_text('#!/bin/sh\nshift 2\nexec "$@"\n')
    launcher.chmod(0o755)
    runner = run.Runner(Place([], "here", str(launcher), "none", "", ""), str(folder), [], 2)
    runner.run_all(collections.deque([["test_made"], ["test_absent"]]))
    return {name.removeprefix("test_made."): result for name, result in runner.results.items()}


class Runs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as folder:
            cls.results = run_suite(folder)

    def expect(self, test, result, text=""):
        self.assertEqual(self.results[test].result, result)
        self.assertIn(text, self.results[test].why)

    def test_results_are_those_of_the_suite(self):
        self.expect("Case.test_a_passes", "passed")
        self.expect("Case.test_b_fails", "failed", "on purpose")
        self.expect("Case.test_c_skips", "skipped", "for want of it")

    def test_a_hang_is_a_failure_with_its_stack_and_the_rest_goes_on(self):
        self.expect("Case.test_d_hangs", "failed", "in test_d_hangs")
        self.expect("Case.test_f_passes_after_all", "passed")

    def test_a_crash_is_a_failure(self):
        self.expect("Case.test_e_crashes", "failed", "SIGABRT")

    def test_tear_down_and_set_up_of_classes_count(self):
        self.expect("TearDownFails.test_passes", "failed", "late")
        self.assertTrue([name for name, result in self.results.items()
                         if "SetUpClassFails" in name and result.result == "failed"])

    def test_a_module_that_cannot_be_loaded_is_a_failure(self):
        self.assertTrue([name for name, result in self.results.items()
                         if "test_absent" in name and result.result == "failed"])


class TriesAgain(unittest.TestCase):
    class Fresh:
        """A runner whose second results are known beforehand."""
        def __init__(self, results):
            self.later = results
            self.results = {}

        def run_all(self, waiting):
            self.ran = list(waiting)
            self.results = self.later

    def test_only_what_passes_then_is_forgiven(self):
        first = self.Fresh({})
        first.results = {name: run.Result(name, result, "why") for name, result in
                         (("m.C.a", "failed"), ("m.C.b", "failed"), ("n.C.c", "passed"), ("o.C.d", "failed"))}
        fresh = self.Fresh({"m.C.a": run.Result("m.C.a", "passed", ""), "m.C.b": run.Result("m.C.b", "failed", "again"),
                            "o.C.d": run.Result("o.C.d", "skipped", "")})
        with contextlib.redirect_stdout(io.StringIO()) as said:
            run.try_again(first, fresh)
        self.assertIn("UNSTEADY: m.C.a", said.getvalue())
        self.assertEqual(fresh.ran, [["m"], ["o"]])
        self.assertEqual([first.results[name].result for name in sorted(first.results)],
                         ["passed", "failed", "passed", "failed"])


class Judges(unittest.TestCase):
    RULES = [run.Rule("pass", "m.C.a", "", ""), run.Rule("either", "m.C.b", "no pages", "pages"),
             run.Rule("skip", "m.C.*", "no device", "a device")]

    def complaint(self, test, result, why=""):
        return run.complaint(run.Result(test, result, why), run.rule_for(test, self.RULES))

    def test_what_is_expected_is_fine(self):
        for case in (("m.C.a", "passed"), ("m.C.b", "passed"), ("m.C.b", "skipped", "there are no pages"),
                     ("m.C.c", "skipped", "no device")):
            self.assertIsNone(self.complaint(*case), case)

    def test_anything_else_is_not(self):
        for case in (("m.C.a", "skipped", "no device"), ("m.C.b", "skipped", "no device"), ("m.C.c", "passed"),
                     ("m.C.c", "skipped", "tired"), ("m.C.a", "failed", "x"), ("n.C.a", "passed")):
            self.assertTrue(self.complaint(*case), case)

    def test_a_test_that_is_to_pass_must_be_run(self):
        with contextlib.redirect_stdout(io.StringIO()) as said:
            self.assertEqual(run.judge("here", {}, self.RULES[:1], ["m"])[1], 1)
            self.assertEqual(run.judge("here", {}, self.RULES[:1], ["n"])[1], 0)
        self.assertIn("FAILED  m.C.a over here", said.getvalue())


class Releases(unittest.TestCase):
    def test_of_44_and_before_have_the_first_rules_alone(self):
        self.assertEqual(run.rules_of_release(44), run.read_rules(run.HERE / "expected.tsv"))
        self.assertEqual(run.rules_of_release(0), run.rules_of_release(44))

    def test_of_56_know_what_came_and_what_is_gone(self):
        rules = run.rules_of_release(57)
        self.assertEqual(run.rule_for("test_qpex.QpExTestCase.test_qp_ex_rc_flush", rules).kind, "pass")
        self.assertEqual(run.rule_for("test_mr.DmaBufMRTest.test_dmabuf_read", rules).says, "is not present")
        self.assertIsNone(run.rule_for("test_odp.OdpTestCase.test_odp_rc_srq_traffic", rules))
        self.assertIsNotNone(run.rule_for("test_odp.OdpTestCase.test_odp_rc_srq_traffic", run.rules_of_release(55)))


if __name__ == "__main__":
    unittest.main()
