#!/usr/bin/env python3
"""steps_test BUILD ROOT: what `verbena sim` says of steps of training: errors at their place, keys without effect, ways, costs."""

import json
import pathlib
import sys
import unittest

from sim_case import SimCase

STEP = """name: a small step
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
    tp: 8
run: {mode: formula, seed: 1}
"""


class Steps(SimCase):
    def settings(self, *settings):
        return [word for setting in settings for word in ("--set", setting)]

    def step(self, scenario, *settings, **more):
        """What is told of the one step."""
        return self.json(scenario, *self.settings(*settings), **more)["steps"][0]

    def test_error__points_to_its_key(self):
        scenario = self.scenario(STEP.replace("tp: 8", "tp: 7", 1))
        for mode in "formula", "packets":
            self.assertIn("s.yaml:14:9: workload.0.tp: 7 does not divide the model's 16 heads: write 4 or 8",
                          self.sim(scenario, *self.settings(f"run.mode={mode}"), status=2).stderr)
        # What a variant says is the variant's fault, and the command line has no place.
        scenario = self.scenario(STEP + "variants:\n  odd: {workload: {0: {tp: 7}}}\n")
        self.assertIn("s.yaml:17:28: workload.0.tp: 7 does", self.sim(scenario, *self.settings("variant=odd"), status=2).stderr)
        self.assertIn("s.yaml: workload.0.tp: 7 does", self.sim(scenario, *self.settings("workload.tp=7"), status=2).stderr)
        # A key that is left out: at its workload.
        scenario = self.scenario(STEP.replace("    hidden: 1024\n", ""))
        self.assertIn("s.yaml:6:5: workload.0.hidden: it is missing", self.sim(scenario, status=2).stderr)
        scenario = self.scenario(STEP.replace("batch: 16", "batch: 16\n    memory: checked\n    gpu: H20").replace("layers: 4", "layers: 4000"))
        self.assertIn("s.yaml:14:13: workload.0.memory: it needs", self.sim(scenario, status=2).stderr)

    def test_keys__without_effect_are_named(self):
        def warned(*settings):
            return self.sim(scenario, *self.settings(*(f"workload.{setting}" for setting in settings))).stderr

        scenario = self.scenario(STEP)
        for settings, key in ((["vpp=2"], "vpp"), (["bucket=100"], "bucket"), (["dispatcher=all-gather"], "dispatcher"),
                              (["context=ring"], "context"), (["zero=3", "overlap-parameters=yes"], "overlap-parameters"),
                              (["zero=3", "overlap-gradients=yes"], "overlap-gradients"), (["tp=16", "dp=1", "zero=2"], "zero"),
                              (["tp=1", "sp=yes"], "sp"), (["schedule=zero-bubble"], "schedule"), (["order=tp-cp-pp-dp"], "order"),
                              (["ends-count-as-layers=yes"], "ends-count-as-layers")):
            told = warned(*settings)
            self.assertRegex(told, rf"warning: workload\.\*\.{key}: .*: no effect", settings)
            self.assertEqual(told.count("no effect"), 1, told)
        self.assertEqual(warned("tp=4", "pp=2", "vpp=2", "schedule=interleaved", "order=tp-cp-pp-dp"), "")
        self.assertEqual(warned("overlap-gradients=yes", "bucket=100"), "")
        # What is given and has no effect changes nothing.
        self.assertEqual(self.step(scenario, "workload.vpp=2")["step"], self.step(scenario)["step"])


if __name__ == "__main__":
    Steps.build, Steps.root = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
