#!/usr/bin/env python3
"""steps_at_once_test BUILD ROOT: several steps of training on one cluster."""

import json
import pathlib
import sys
import unittest

from sim_case import SimCase

# One spine, so that no hash decides: of four hosts that a leaf has two may send at once.
SHARED = """name: two small steps
network: {topology: leaf-spine, endpoints: 16, leaves: 4, spines: 1, host-rate: 100G, fabric-rate: 200G, switch: {profile: ideal}}
hosts: {gpu: H100, gpus: 1, placement: spread}
transport: {cc: none, mtu: 4096, ack-every: 16}
workload:
  - {kind: step, layers: 4, hidden: 1024, heads: 16, ffn: 4096, vocabulary: 1000, sequence: 2048, batch: 16, dp: 8}
  - {kind: step, layers: 4, hidden: 1024, heads: 16, ffn: 4096, vocabulary: 1000, sequence: 2048, batch: 16, dp: 8}
run: {seed: 1}
"""
# Each host's first GPU, and each second one: each step has a rail of its own.
RAILS = SHARED.replace(SHARED.split("\n")[1], "network: {topology: rail, machines: 8, nics-a-machine: 2, leaves: 1, host-rate: 100G, "
                       "host-delay: 500ns, switch: {profile: ideal}}").replace(
    "gpus: 1, placement: spread", "gpus: 2, nics: 2, placement: \"0,2,4,6,8,10,12,14,1,3,5,7,9,11,13,15\"")


class AtOnce(SimCase):
    def settings(self, *settings):
        return [word for setting in settings for word in ("--set", setting)]

    def steps(self, scenario, *settings):
        return self.json(scenario, *self.settings(*settings))["steps"]

    def test_steps__slow_each_other_where_they_share_links(self):
        scenario = self.scenario(SHARED)
        # A queue shares by the size of messages, and flows share evenly, as congestion control does that keeps queues short.
        for settings, differs in ([], 0.05), (["workload.1.layers=8"], 0.2), (["workload.1.layers=8", "transport.cc=swift"], 0.07):
            with self.subTest(settings):
                by = {mode: self.steps(scenario, f"run.mode={mode}", *settings) for mode in ("packets", "flows")}
                for one, other in zip(by["packets"], by["flows"]):
                    self.assertAlmostEqual(other["step"]["time_ps"] / one["step"]["time_ps"], 1, delta=differs)
                    self.assertAlmostEqual(other["step"]["alone_ps"] / one["step"]["alone_ps"], 1, delta=0.05)
                    for told in one, other:
                        self.assertGreater(told["step"]["time_ps"], 1.4 * told["step"]["alone_ps"])
                self.assertEqual([(told["first"], told["ranks"]) for told in by["packets"]], [(0, 8), (8, 8)])

    def test_steps__on_rails_of_their_own_do_not(self):
        scenario = self.scenario(RAILS)
        for mode in "packets", "flows":
            for told in self.steps(scenario, f"run.mode={mode}"):
                self.assertAlmostEqual(told["step"]["time_ps"] / told["step"]["alone_ps"], 1, delta=1e-3)

    def test_alone__is_the_step_by_itself(self):
        both = self.scenario(SHARED)
        lines = SHARED.split("\n")
        one = self.scenario("\n".join(lines[:6] + lines[7:]), "one.yaml")
        for mode in "packets", "flows":
            self.assertEqual(self.steps(both, f"run.mode={mode}")[0]["step"]["alone_ps"],
                             self.steps(one, f"run.mode={mode}")[0]["step"]["time_ps"])
            told = self.json(both, "--no-alone", *self.settings(f"run.mode={mode}"))["steps"]
            self.assertEqual(["alone_ps" in step["step"] for step in told], [False, False])
            said = self.sim(both, *self.settings(f"run.mode={mode}")).stdout
            self.assertEqual(said.count(": beside the others 1."), 2)
            self.assertIn("\nranks   8 H100 from rank 8 on: tp 1", said)

    def test_formula__has_each_by_itself(self):
        scenario = self.scenario(SHARED)
        first, second = self.steps(scenario, "run.mode=formula")
        self.assertEqual((first["first"], second["first"]), (0, 0))
        self.assertNotIn("alone_ps", first["step"])
        self.steps(scenario, "run.mode=formula", "workload.0.ranks=0", "workload.1.ranks=4-11")

    def test_result__is_the_same_with_any_threads(self):
        scenario = self.scenario(SHARED)
        hashes = {self.json(scenario, *self.settings(f"run.threads={threads}"))["result_hash"] for threads in (1, 2, 3)}
        self.assertEqual(len(hashes), 1)

    def test_ranks__are_given_or_the_first_that_are_free(self):
        scenario = self.scenario(SHARED)
        for settings, firsts in (([], [0, 8]), (["0.ranks=8"], [8, 0]), (["0.ranks=8-15"], [8, 0]), (["1.ranks=0"], [8, 0]),
                                 (["0.dp=4", "1.dp=4", "0.ranks=2"], [2, 6]), (["0.dp=2", "0.batch=16", "1.dp=0"], [0, 2]),
                                 (["0.ranks=0-7", "0.dp=0", "1.dp=0"], [0, 8])):
            told = self.steps(scenario, "run.mode=flows", "workload.0.batch=112", "workload.1.batch=112", *(f"workload.{setting}" for setting in settings))
            self.assertEqual([step["first"] for step in told], firsts, settings)
            taken = [rank for step in told for rank in range(step["first"], step["first"] + step["ranks"])]
            self.assertEqual(len(taken), len(set(taken)), settings)

    def test_ranks__that_cannot_be_are_refused_with_a_cure(self):
        scenario = self.scenario(SHARED.replace("dp: 8}", "dp: 8, ranks: 4}"))
        for mode in "packets", "flows":
            said = self.sim(scenario, *self.settings(f"run.mode={mode}"), status=2).stderr
            self.assertIn("s.yaml:7:124: workload.1.ranks: it has 4 to 11, and workload.0 has 4 to 11: leave ranks out, or begin at another", said)
        scenario = self.scenario(SHARED)
        for settings, wanted in ((["1.ranks=12"], "workload.1.dp: tp x cp x pp x dp is 1 x 1 x 1 x 8, and its part of the network has 4 ranks"),
                                 (["0.ranks=16"], "workload.0.ranks: 16: the network has ranks 0 to 15"),
                                 (["0.ranks=9-16"], "workload.0.ranks: 9-16: the network has ranks 0 to 15"),
                                 (["0.ranks=0-3"], "workload.0.ranks: they are 4, and tp x cp x pp x dp is 8: write 0-7"),
                                 (["0.ranks=7-0"], "workload.0.ranks: 7-0: write FIRST or FIRST-LAST"),
                                 (["0.ranks=-1"], "workload.0.ranks: -1: write"), (["0.ranks=99999999999"], "workload.0.ranks: 99999999999: write"),
                                 (["0.dp=0"], "workload.1.ranks: no rank of the network's 16 is free"),
                                 (["0.tp=1048576", "0.cp=1048576"], "tp x cp x pp")):
            said = self.sim(scenario, *self.settings("run.mode=flows", *(f"workload.{setting}" for setting in settings)), status=2).stderr
            self.assertIn(wanted, said)

    def test_compare__has_a_line_for_each(self):
        scenario = self.scenario(SHARED)
        runs = json.loads(self.sim("--json", "--compare", scenario, "run.mode=packets,flows").stdout)
        self.assertEqual([len(run["result"]["steps"]) for run in runs], [2, 2])


if __name__ == "__main__":
    AtOnce.build, AtOnce.root = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
