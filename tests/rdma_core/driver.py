#!/usr/bin/python3
"""Run some of rdma-core's tests in this process, and write a line of JSON before and after each into --report.

A test that outlives its deadline ends the process with the stacks of all its threads on stderr; run.py, which starts
this program, then knows by the report which test it was, and goes on with the others."""

import argparse
import faulthandler
import json
import multiprocessing
import sys
import unittest

sys.dont_write_bytecode = True


class Reporter(unittest.TestResult):
    """One JSON line when a test begins, one when it has ended."""

    def __init__(self, report, seconds):
        super().__init__()
        self.report = report
        self.seconds = seconds
        self.outcome = None

    def write(self, test, result, why=""):
        self.report.write(json.dumps({"test": name_of(test), "result": result, "why": why}) + "\n")
        self.report.flush()

    def startTest(self, test):
        super().startTest(test)
        self.outcome = None
        self.write(test, "began")
        faulthandler.dump_traceback_later(self.seconds, exit=True)

    def stopTest(self, test):
        faulthandler.cancel_dump_traceback_later()
        super().stopTest(test)
        self.write(test, *(self.outcome or ("failed", "it told no result")))

    def settle(self, result, why=""):
        """The first bad news of a test counts: a tearDown that fails makes a passed test a failed one."""
        if self.outcome is None or self.outcome[0] != "failed":
            self.outcome = (result, why)

    def addSuccess(self, test):
        self.settle("passed")

    def addSkip(self, test, reason):
        self.settle("skipped", str(reason))

    def addFailure(self, test, error):
        self.settle("failed", self._exc_info_to_string(error, test))

    def addError(self, test, error):
        why = self._exc_info_to_string(error, test)
        if isinstance(test, unittest.TestCase):
            self.settle("failed", why)
        else:  # of a class or module
            self.write(test, "failed", why)

    def addSubTest(self, test, subtest, error):
        if error is not None:
            self.settle("failed", self._exc_info_to_string(error, test))

    def addExpectedFailure(self, test, error):
        self.settle("passed")

    def addUnexpectedSuccess(self, test):
        self.settle("failed", "an expected failure passed")


def name_of(test):
    return test.id().removeprefix("tests.")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--suite", required=True, help="folder with the unpacked package 'tests'")
    parser.add_argument("--report", help="file to append results to")
    parser.add_argument("--seconds", type=float, default=30, help="deadline of a test")
    parser.add_argument("--list", action="store_true", help="print the tests' names instead")
    parser.add_argument("--leave-out", action="append", default=[], metavar="TEST", help="a test that has been run")
    parser.add_argument("modules", nargs="+")
    options, theirs = parser.parse_known_args()

    multiprocessing.set_start_method("fork")  # for which the suite is written; Python 3.14 would do otherwise
    sys.path[:0] = [options.suite, options.suite + "/tests"]
    sys.argv[1:] = theirs  # --dev, --port, --gid
    from args_parser import parser as their_parser  # of the suite
    their_parser.parse_args()
    suite = unittest.TestSuite(unittest.defaultTestLoader.loadTestsFromNames(
        ["tests." + module for module in options.modules]))
    tests = [test for test in flatten(suite) if name_of(test) not in options.leave_out]
    if options.list:
        print("\n".join(name_of(test) for test in tests))
        return
    with open(options.report, "a", encoding="utf-8") as report:
        unittest.TestSuite(tests).run(Reporter(report, options.seconds))


def flatten(suite):
    for entry in suite:
        if isinstance(entry, unittest.TestSuite):
            yield from flatten(entry)
        else:
            yield entry


if __name__ == "__main__":
    main()
