#!/usr/bin/env python3
"""ring_test PROGRAM: ring_pingpong says a time, on one core or two, and its other half leaves with it."""

import os
import re
import subprocess
import sys
import unittest


class Ring(unittest.TestCase):
    program = None

    def run_on(self, *cores):
        return subprocess.run([self.program, *map(str, cores)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                              text=True, timeout=60, check=False)

    def test_two_cores__give_a_time_one_way(self):
        cores = sorted(os.sched_getaffinity(0))
        if len(cores) < 2:
            self.skipTest("there is one core: both ends spin")
        done = self.run_on(*cores[:2])
        self.assertEqual(done.returncode, 0)
        self.assertGreater(float(re.fullmatch(r"ring_ns=([\d.]+)\n", done.stdout)[1]), 1)

    def test_core_that_is_not_there__is_refused(self):
        cores = sorted(os.sched_getaffinity(0))
        self.assertEqual(self.run_on(cores[0], 100000).returncode, 1)
        self.assertEqual(self.run_on(100000, cores[0]).returncode, 1)

    def test_no_cores__is_refused(self):
        self.assertEqual(self.run_on().returncode, 2)


if __name__ == "__main__":
    Ring.program = sys.argv.pop()
    unittest.main()
