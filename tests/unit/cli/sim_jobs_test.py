#!/usr/bin/env python3
"""sim_jobs_test BUILD ROOT: what `verbena sim` says of jobs, above all of those that are cut short, refused or not run."""

import csv
import json
import os
import pathlib
import signal
import subprocess
import sys
import unittest

from sim_case import SimCase, TINY

TWO_JOBS = """
network: {topology: switch, endpoints: 8, host-rate: 100G}
workload:
  - {kind: allreduce, first: 0, endpoints: 4, bytes: 1MB}
  - {kind: alltoall, first: 4, endpoints: 4, bytes: 1MB}
"""


class Jobs(SimCase):
    def popen(self, *arguments):
        started = subprocess.Popen([self.build / "src/cli/verbena", "sim", *map(str, arguments)], text=True, cwd=self.place,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(started.kill)
        return started

    def test_jobs_alone__that_are_interrupted_leave_a_result_that_says_so(self):
        """Both jobs together last long enough for a line of progress, and so does the first alone."""
        started = self.popen("--progress", "--json", self.scenario(TWO_JOBS.replace("1MB", "2GB")))
        line = "run"
        while line and not line.startswith("a job alone: "):
            line = started.stderr.readline()
        self.assertRegex(line, "of 24 messages, ")
        started.send_signal(signal.SIGINT)
        told = json.loads(started.communicate(timeout=60)[0])
        self.assertEqual((started.returncode, told["end"], told["alone_end"]), (4, "done", "stopped"))
        self.assertEqual([job["alone_ps"] for job in told["jobs"]], [-1, -1])
        self.assertTrue(all(job["jct_ps"] > 0 for job in told["jobs"]))
        self.assertEqual(self.json(self.scenario(TWO_JOBS))["alone_end"], "done")


if __name__ == "__main__":
    Jobs.build, Jobs.root = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
