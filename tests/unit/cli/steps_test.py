#!/usr/bin/env python3
"""steps_test BUILD ROOT: what `verbena sim` says of steps of training: errors at their place, keys without effect, ways, costs."""

import json
import pathlib
import re
import resource
import sys
import unittest

from sim_case import StepCase, small_step

STEP = small_step("tp: 8")


class Steps(StepCase):
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

    def assert_modes_agree(self, cuts):
        """By formula as by packets, within so much; where nothing contends."""
        for cut, allowed in cuts:
            shape = "layers: 4, hidden: 1536, heads: 48, ffn: 6144, vocabulary: 1000, sequence: 2048"
            text = STEP[:STEP.index("  - kind")].replace("machines: 2", "machines: 4") + f"  - {{kind: step, {shape}, {cut}}}\n"
            scenario = self.scenario(text)
            packets, formula = (self.step(scenario, f"run.mode={mode}")["step"] for mode in ("packets", "formula"))
            with self.subTest(cut):
                self.assertAlmostEqual(formula["time_ps"] / packets["time_ps"], 1, delta=allowed)

    def test_formula__takes_each_boundary_by_its_way(self):
        """Stages beside each other in a host, and in two."""
        self.assert_modes_agree([("tp: 4, pp: 4, order: tp-cp-pp-dp, dp: 2, batch: 32", 0.02),
                                 ("tp: 2, pp: 4, order: tp-cp-pp-dp, dp: 4, batch: 32", 0.02)])

    def test_formula__takes_the_slowest_group(self):
        """Groups that do not divide a host's GPUs cross hosts, some of them, and unequally: one ring by one NIC."""
        self.assert_modes_agree([("tp: 6, sp: no, dp: 4, batch: 16", 0.05), ("dp: 30, batch: 30", 0.02)])

    def test_formula__has_steps_of_two_kinds_in_a_ring(self):
        """Of whole hosts: small shares, whose latency counts, and large ones."""
        self.assert_modes_agree([("tp: 16, dp: 2, batch: 8", 0.09), ("dp: 32, batch: 32", 0.01), ("tp: 2, cp: 8, dp: 2, batch: 8", 0.01)])

    def test_dry_run__tells_the_cost(self):
        """Of each mode, within a factor of two of what it takes, or why it would not run; also of several runs."""
        scenario = self.scenario(STEP, "step.yaml")
        told = self.json(scenario, "--set", "run.mode=packets")
        said = self.sim("--dry-run", scenario, "--set", "run.mode=packets").stdout
        hops = re.search(r"^cost    by packets: about ([\d.]+) ([kM]) packet-hops", said, re.M)
        self.assertAlmostEqual(float(hops[1]) * {"k": 1e3, "M": 1e6}[hops[2]] / told["packet_hops"], 1, delta=0.05)
        self.assertIn("model   own", said)
        self.assertIn("cost    it would not run: workload.0.memory: it needs",
                      self.sim("--dry-run", scenario, *self.settings("run.mode=packets", "workload.layers=4000")).stdout)
        large = self.root / "examples/llama3-405b-16384.yaml", *self.settings("workload.batch=65536")
        said = re.search(r"^cost    by flows: about 1\.\d+ M operations: ([\d.]+) s of CPU time, ([\d.]+) MB of memory$",
                         self.sim("--dry-run", *large).stdout, re.M)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        self.sim(*large)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        if not self.is_sanitized():
            self.assertTrue(1 / 6 < float(said[1]) / (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) < 6, said)
            self.assertTrue(1 / 2 < float(said[2]) * 1e3 / after.ru_maxrss < 2, (said, after.ru_maxrss))
        said = self.sim("--dry-run", "--compare", scenario, "run.mode=formula,packets").stdout.splitlines()
        self.assertRegex(said[0], r"^mode=formula +by formula: about [\d.]+ k? ?operations")
        self.assertRegex(said[1], r"^mode=packets +by packets: about [\d.]+ [kM] packet-hops")

    def test_compare__tells_steps_by_every_mode(self):
        scenario = self.scenario(STEP)
        said = self.sim("--compare", scenario, "run.mode=formula,packets", "workload.zero=1,3").stdout.splitlines()
        self.assertRegex(said[0], "^ +step +computing +exposed +bubble +MFU +tokens/s +net gains$")
        self.assertEqual([line.split()[:2] for line in said[1:] if not line.startswith("  as")],
                         [[f"mode={mode}", f"zero={zero}"] for mode in ("formula", "packets") for zero in (1, 3)])
        runs = json.loads(self.sim("--json", "--compare", scenario, "run.mode=formula,packets,flows").stdout)
        self.assertEqual([run["result"]["steps"][0]["mode"] for run in runs], ["formula", "packets", "flows"])
        self.assertEqual(runs[0]["result"]["steps"][0], self.step(scenario))
        variants = self.scenario(STEP + "variants: {a: {hosts: {gpu: H100}}, b: {workload: {0: {tp: 4}}}}\n")
        self.assertEqual(len(self.sim("--compare", variants, "variant=a,b").stdout.splitlines()), 3)
        self.assertIn("does not divide", self.sim("--compare", scenario, "workload.tp=8,7", status=2).stderr)

    def test_same_steps__say_why(self):
        """Two networks of which neither gains: all is hidden, or nothing leaves a host."""
        words = ["workload.hidden=8192", "workload.ffn=32768", "workload.sequence=8192", "workload.overlap-gradients=yes",
                 "workload.overlap-parameters=yes", "workload.memory=unchecked"]
        scenario, rates = self.scenario(STEP), "network.host-rate=400G,800G"
        hidden = self.settings(*words, "workload.tp=1", "workload.batch=256", "workload.layers=16")
        one = self.step(scenario, *hidden[1::2])
        self.assertLess(one["network_bound"], 0.001)
        self.assertEqual(one["bound_by"], "computing")
        self.assertRegex(self.sim(scenario, *hidden).stdout,
                         r"gains more than 0\.0\d%: exposed communication between hosts 0\.0\d%, bound by computing\n")
        said = self.sim("--compare", scenario, rates, *hidden).stdout.splitlines()
        self.assertRegex(said[-1], r"^  as host-rate=400G: exposed communication between hosts 0\.0\d%, bound by computing$")
        runs = json.loads(self.sim("--json", "--compare", scenario, rates, *hidden).stdout)
        self.assertEqual(runs[0]["same_steps"], [None])
        self.assertEqual(runs[1]["same_steps"][0]["as"], "host-rate=400G")
        self.assertRegex(runs[1]["same_steps"][0]["because"], "bound by computing$")
        # Where communication is exposed a faster network is faster, and nothing is said.
        runs = json.loads(self.sim("--json", "--compare", scenario, rates).stdout)
        self.assertEqual([run["same_steps"] for run in runs], [[None], [None]])
        self.assertGreater(runs[0]["result"]["steps"][0]["exposed_between_hosts_share"], 0.01)


if __name__ == "__main__":
    Steps.build, Steps.root = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
