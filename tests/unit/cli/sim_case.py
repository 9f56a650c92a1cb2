"""What tests of `verbena sim` have in common: a small scenario, and a place of their own to run in."""

import functools
import json
import pathlib
import subprocess
import tempfile
import unittest

TINY = """
name: tiny
network:
  topology: switch
  endpoints: 4
  host-rate: 100G
  host-delay: 1us
  switch: {flow-control: drops, buffer: 0, class-count: 1}
workload:
  - {kind: incast, target: 3, senders: 3, bytes: 20kB}
"""


class SimCase(unittest.TestCase):
    build = root = None

    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.place = pathlib.Path(scratch.name)

    def sim(self, *arguments, status=0):
        done = subprocess.run([self.build / "src/cli/verbena", "sim", *map(str, arguments)], cwd=self.place, text=True,
                              timeout=120, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done

    def scenario(self, text=TINY, name="s.yaml"):
        path = self.place / name
        path.write_text(text)
        return path

    def json(self, *arguments, status=0):
        return json.loads(self.sim("--json", *arguments, status=status).stdout)

    @functools.cache
    def is_sanitized(self):
        return self.json(self.scenario())["max_rss_bytes"] > 8e6
