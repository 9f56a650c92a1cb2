#!/usr/bin/env python3
"""asleep_test PROGRAM: asleep_pair says its three figures, also of one core, and how many calls it makes is known."""

import os
import re
import subprocess
import sys
import unittest


class Asleep(unittest.TestCase):
    program = None

    def run_on(self, *cores):
        return subprocess.run([self.program, *map(str, cores)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                              text=True, timeout=60, check=False)

    def test_figures__are_three(self):
        cores = sorted(os.sched_getaffinity(0))
        done = self.run_on(cores[0], cores[-1])
        self.assertEqual(done.returncode, 0)
        wake, cpu, calls = map(float, re.fullmatch(r"wake_us=([\d.]+) cpu=([\d.]+) calls=(\d+)\n", done.stdout).groups())
        self.assertGreater(wake, 0)
        self.assertGreater(cpu, 0)
        self.assertTrue(954 < calls < 1010, calls)

    def test_core_that_is_not_there__is_refused(self):
        self.assertEqual(self.run_on(100000, 0).returncode, 1)

    def test_no_cores__is_refused(self):
        self.assertEqual(self.run_on().returncode, 2)


if __name__ == "__main__":
    Asleep.program = sys.argv.pop()
    unittest.main()
