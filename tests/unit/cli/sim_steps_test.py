#!/usr/bin/env python3
"""sim_steps_test BUILD ROOT: steps of training by flows, beside packets and the formula."""

import pathlib
import sys
import unittest

from sim_case import SimCase

# One spine, so that no hash decides: half of what a leaf's hosts send finds room.
NARROW = """
name: a small step over a narrow spine
network: {topology: leaf-spine, endpoints: 16, leaves: 4, spines: 1, host-rate: 100G, fabric-rate: 200G, switch: {profile: ideal}}
hosts: {gpu: H100, gpus: 1}
transport: {cc: none, mtu: 4096, ack-every: 16}
workload:
  - {kind: step, layers: 4, hidden: 1024, heads: 16, ffn: 4096, vocabulary: 1000, sequence: 2048, batch: 32}
run: {seed: 1}
"""
EXPERTS = ["workload.experts=16", "workload.top-k=2", "workload.ffn=1024"]


class Steps(SimCase):
    def step(self, scenario, mode, *settings):
        words = [word for setting in (f"run.mode={mode}", *settings) for word in ("--set", setting)]
        result = self.json(scenario, *words)
        self.assertEqual(result["steps"][0]["mode"], mode)
        return result["steps"][0]["step"]

    def test_flows__share_links_as_packets_do(self):
        narrow = self.scenario(NARROW)
        for name, settings, differs in (("neighbours in rank order", [], 0.01), ("hosts spread over leaves", ["hosts.placement=spread"], 0.01),
                                        ("experts", [*EXPERTS, "workload.ep=4"], 0.01),
                                        ("tokens and gradients at once", [*EXPERTS, "workload.ep=4", "workload.pp=2", "workload.overlap-gradients=yes"], 0.01),
                                        ("stages", ["workload.pp=4"], 0.03)):
            with self.subTest(name):
                by = {mode: self.step(narrow, mode, *settings) for mode in ("packets", "flows", "formula")}
                self.assertAlmostEqual(by["flows"]["time_ps"] / by["packets"]["time_ps"], 1, delta=differs)
                self.assertAlmostEqual(by["flows"]["compute_ps"] / by["packets"]["compute_ps"], 1, delta=1e-6)
                if settings: # what the formula does not see
                    self.assertLess(by["formula"]["time_ps"], 0.85 * by["packets"]["time_ps"])

    def test_flows__are_the_formula_where_nothing_is_shared(self):
        example = self.root / "examples/llama3-70b-1024.yaml"
        by = {mode: self.step(example, mode) for mode in ("flows", "formula")}
        self.assertAlmostEqual(by["flows"]["time_ps"] / by["formula"]["time_ps"], 1, delta=1e-4)
        self.assertIn("by flows: links are shared max-min fairly", self.sim(example, "--set", "run.mode=flows").stdout)


if __name__ == "__main__":
    Steps.build, Steps.root = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
