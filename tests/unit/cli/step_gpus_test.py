#!/usr/bin/env python3
"""step_gpus_test BUILD ROOT: what GPUs of a step of training take: times of a user's own."""

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
    tp: 2
    pp: 2
run: {mode: formula, seed: 1}
"""
ROWS = {"projections": (100, 210), "scores": (20, 50), "ffn": (200, 390), "output": (30, 70)}
MODES = "packets", "flows", "formula"


class Gpus(SimCase):
    def settings(self, *settings):
        return [word for setting in settings for word in ("--set", setting)]

    def step(self, scenario, *settings):
        """What is told of the one step."""
        return self.json(scenario, *self.settings(*settings))["steps"][0]

    def table(self, rows=ROWS, shape="1x2048/2"):
        lines = [f"{name}-{way},{shape},{time}" for name, times in rows.items() for way, time in zip(("forward", "backward"), times)]
        (self.place / "times.csv").write_text("\n".join(["operation,shape,microseconds", "ffn-forward,4x2048/2,1", *lines]) + "\n")

    def test_table__takes_the_place_of_mfu(self):
        self.table()
        scenario = self.scenario(STEP)
        layer = sum(sum(times) for name, times in ROWS.items() if name != "output") + ROWS["scores"][0] # selective: again
        wanted = 16 / 4 * (4 * layer + sum(ROWS["output"])) / 2 # a mean of both stages, of four replicas
        by_peak = self.step(scenario)
        for mode in MODES:
            told = self.step(scenario, f"run.mode={mode}", "workload.compute-times=times.csv")
            self.assertAlmostEqual(told["step"]["compute_ps"] / 1e6, wanted, delta=0.01)
            self.assertEqual(told["compute_times"], "times.csv")
        self.assertNotIn("compute_times", by_peak)
        self.assertNotAlmostEqual(by_peak["step"]["compute_ps"] / 1e6, wanted, delta=100)
        for more in [], ["--dry-run"]:
            self.assertRegex(self.sim(scenario, *more, "--set", "workload.compute-times=times.csv").stdout,
                             r"\nwork    [\d.]+ .FLOP, in the kernels' times of times.csv\n")
        self.assertIn("warning: workload.*.mfu: the table has the times: no effect",
                      self.sim(scenario, *self.settings("workload.compute-times=times.csv", "workload.mfu=50%")).stderr)

    def test_table__is_beside_the_scenario_and_has_what_is_wanted(self):
        scenario = self.scenario(STEP.replace("batch: 16", "batch: 16\n    compute-times: ./times.csv"))
        self.table(shape="2x2048/2")
        said = self.sim(scenario, status=2).stderr
        self.assertRegex(said, r"s.yaml:14:20: workload.0.compute-times: .*times.csv: it has no time of projections-forward of shape 1x2048/2")
        self.table({**ROWS, "scores": (20, -50)})
        self.assertRegex(self.sim(scenario, status=2).stderr, r"s.yaml:14:20: workload.0.compute-times: .*times.csv:6:26: -50: a time is")
        (self.place / "times.csv").unlink()
        self.assertRegex(self.sim(scenario, status=2).stderr, r"s.yaml:14:20: workload.0.compute-times: .*times.csv: No such file")


if __name__ == "__main__":
    Gpus.build, Gpus.root = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
