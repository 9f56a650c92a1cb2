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

    def sim(self, *arguments, status=0, is_checked=False):
        """A step of training runs without its check by packets, which takes minutes, unless is_checked."""
        if not is_checked:
            arguments = ("--no-check", *arguments)
        done = subprocess.run([self.build / "src/cli/verbena", "sim", *map(str, arguments)], cwd=self.place, text=True,
                              timeout=120, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done

    def scenario(self, text=TINY, name="s.yaml"):
        path = self.place / name
        path.write_text(text)
        return path

    def json(self, *arguments, **how):
        return json.loads(self.sim("--json", *arguments, **how).stdout)

    @functools.cache
    def is_sanitized(self):
        return self.json(self.scenario())["max_rss_bytes"] > 8e6


def small_step(*cut):
    """A scenario of a step, cut over ranks by these keys, a line each."""
    return """name: a small step
network: {topology: rail, machines: 2, nics-a-machine: 8, leaves: 1, host-rate: 400G, host-delay: 500ns, switch: {profile: ideal}}
hosts: {gpu: H100}
transport: {cc: none, mtu: 4096, ack-every: 16}
workload:
  - kind: step
    layers: 4
    hidden: 1024
    heads: 16
    ffn: 4096
    vocabulary: 1000
    sequence: 2048
    batch: 16
""" + "".join(f"    {line}\n" for line in cut) + "run: {mode: formula, seed: 1}\n"


class StepCase(SimCase):
    def settings(self, *settings):
        return [word for setting in settings for word in ("--set", setting)]

    def step(self, scenario, *settings, **more):
        """What is told of the one step."""
        return self.json(scenario, *self.settings(*settings), **more)["steps"][0]
