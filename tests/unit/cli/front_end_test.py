#!/usr/bin/env python3
"""front_end_test BUILD ROOT: storage on a front-end network of its own (hosts.front-end)."""

import pathlib
import sys
import unittest

from sim_case import SimCase

# One spine each, so that no hash decides; the front end is as fast as the back end, of which storage has a leaf otherwise.
APART = """name: apart
network: {topology: leaf-spine, endpoints: 16, leaves: 4, spines: 1, host-rate: 100G, fabric-rate: 400G}
hosts: {gpu: H100, gpus: 2, nics: 2, front-end: {storage: 4, rate: 200G}}
transport: {ack-every: 64}
workload:
  - {kind: allreduce, bytes: 16MB}
  - {kind: checkpoint, bytes: 100MB, message: 1MB, restore: yes}
"""
SHARED = APART.replace("endpoints: 16, leaves: 4", "endpoints: 20, leaves: 5").replace(
    ", front-end: {storage: 4, rate: 200G}", "").replace("bytes: 16MB", "bytes: 16MB, endpoints: 16").replace(
    "restore: yes", "restore: yes, storage: 16-19")


class FrontEnd(SimCase):
    def set(self, *settings):
        return [word for setting in settings for word in ("--set", setting)]

    def refused(self, change, to, why):
        """The error is where the changed text has a ^."""
        text = APART.replace(change, to)
        before = text[:text.index("^")].split("\n")
        told = self.sim(self.scenario(text.replace("^", "")), status=2).stderr
        self.assertIn(f"s.yaml:{len(before)}:{len(before[-1]) + 1}: {why}", told)

    def test_step_of_the_example__takes_as_long_as_without_the_checkpoint(self):
        text = (self.root / "examples/checkpoint-front-end.yaml").read_text()
        without = text[:text.index("  - kind: checkpoint")].replace("variant: apart\n", "")
        alone = self.json(self.scenario(without))["steps"][0]["step"]["time_ps"]
        apart = self.json(self.scenario(text))
        self.assertEqual(apart["steps"][0]["step"]["time_ps"], alone)
        self.assertEqual(apart["steps"][0]["step"]["alone_ps"], alone)
        self.assertGreater(apart["services"][0]["stored_ps"], alone)
        shared = self.json(self.scenario(text), *self.set("variant=shared"))["steps"][0]["step"]
        self.assertGreater(shared["time_ps"], 1.03 * alone)
        self.assertEqual(shared["alone_ps"], alone)

    def test_collective__is_disturbed_by_a_checkpoint_on_its_own_network_alone(self):
        for mode in "packets", "flows":
            with self.subTest(mode):
                apart, shared = (self.json(self.scenario(text), *self.set(f"run.mode={mode}"))["jobs"][0]
                                 for text in (APART, SHARED))
                self.assertEqual(apart["jct_ps"], apart["alone_ps"])
                self.assertGreater(shared["jct_ps"], 1.05 * shared["alone_ps"])

    def test_checkpoint__is_bound_by_the_front_ends_links(self):
        for mode in "packets", "flows":
            told = self.json(self.scenario(APART), *self.set(f"run.mode={mode}", "hosts.front-end.rate=10G"))
            service = told["services"][0]
            self.assertEqual((service["ranks"], service["storage_nodes"], service["storage_gb_s"]), (16, 4, 5))
            self.assertAlmostEqual(service["stored_ps"] / 1e12, 100e6 / 5e9 / 0.978, delta=0.0015)

    def test_input__comes_by_the_front_end(self):
        input_of = APART.replace("kind: checkpoint, bytes: 100MB, message: 1MB, restore: yes",
                                 "kind: input, tokens: 10000, steps: 2, step-time: 1ms, storage: 1-2")
        told = self.json(self.scenario(input_of))
        names = {link["name"] for link in told["busiest_front_links"]}
        self.assertEqual(told["services"][0]["ranks"], 16)
        self.assertLessEqual({"storage 1 up", "storage 2 up"}, names)
        self.assertNotIn("storage 0 up", names)

    def test_front_end__is_told_with_names_of_its_own(self):
        told = self.json(self.scenario(APART))
        self.assertEqual([told[key] for key in ("endpoints", "front_endpoints", "storage_nodes", "front_switches")],
                         [16, 8, 4, 1])
        for link in told["busiest_front_links"]:
            self.assertRegex(link["name"], r"^(front endpoint \d|front switch 0 port|storage \d)")
        for link in told["busiest_links"]:
            self.assertRegex(link["name"], r"^(endpoint|switch) \d")
        dry = self.sim("--dry-run", self.scenario(APART)).stdout
        self.assertIn("leaf-spine of 16 endpoints (100 Gb/s), 5 switches; front end: switch of 8 NICs and 4 storage nodes "
                      "(200 Gb/s), 1 switch; ", dry)
        self.assertRegex(self.sim(self.scenario(APART)).stdout, r"busiest links of the front end\n  (storage|front)")

    def test_links_of_the_front_end__fail_by_their_names(self):
        down = self.set("network.faults.0.link=front endpoint 3", "network.faults.0.down=10us", "transport.timeout=100us")
        told = self.sim(self.scenario(APART), *down, status=4).stdout
        self.assertRegex(told, r"a message from front endpoint 3 to storage \d: .*front endpoint 3 (up|down)")
        slow = self.json(self.scenario(APART), *self.set("network.faults.0.link=storage 2", "network.faults.0.rate=20G"))
        fast = self.json(self.scenario(APART))
        self.assertGreater(slow["services"][0]["stored_ps"], 4 * fast["services"][0]["stored_ps"])
        self.assertEqual(slow["jobs"][0]["jct_ps"], fast["jobs"][0]["jct_ps"])

    def test_trace__has_links_of_the_front_end(self):
        trace = self.place / "trace.json"
        self.sim("--no-alone", "--trace", trace, self.root / "examples/checkpoint-front-end.yaml")
        self.assertIn('"name": "storage 0 down: queue"', trace.read_text())
        self.assertIn('"name": "storage 0 down: utilisation"', trace.read_text())

    def test_run__has_one_result_with_any_number_of_threads(self):
        text = APART.replace("rate: 200G", "rate: 200G, topology: leaf-spine, leaves: 3, spines: 2, nics: 2").replace(
            "storage: 4", "storage: 2")
        for mode in "packets", "flows":
            hashes = {self.json(self.scenario(text), "--no-alone", *self.set(f"run.threads={threads}", f"run.mode={mode}"))
                      ["result_hash"] for threads in (1, 2, 4)}
            self.assertEqual(len(hashes), 1)

    def test_front_end__that_cannot_be_is_refused_with_the_cure(self):
        self.refused("storage: 4, rate: ", "rate: ^", "hosts.front-end.rate: what a front end carries goes to storage nodes, "
                     "and there are none: write hosts.front-end.storage, as 4, or leave hosts.front-end out")
        self.refused("rate: 200G", "topology: leaf-spine, leaves: ^5",
                     "hosts.front-end: leaves: 8 NICs of hosts and 4 storage nodes cannot be shared out among 5 leaves: "
                     "write a number that divides 12")
        self.refused("rate: 200G", "topology: ^torus", "hosts.front-end.topology: 'torus': write one of switch|leaf-spine")
        self.refused("rate: 200G", "nics: ^0", "hosts.front-end.nics: '0': write one from 1 to 64")
        self.refused("restore: yes", "storage: ^2-4", "workload.1: storage: storage nodes 2-4 of a front end that has 0-3")
        self.refused("restore: yes", "storage: ^all", "workload.1: storage: 'all': write the front end's storage nodes as "
                     "FIRST-LAST, such as 0-3")
        self.refused("workload:", "capture: {links: ^storage 4}\nworkload:", "capture.links: there are only 4 storage nodes")

    def test_paths_of_the_back_end__do_not_depend_on_the_front_end(self):
        hashed = ("network: {topology: leaf-spine, endpoints: 64, leaves: 8, spines: 8, host-rate: 100G}\n"
                  "transport: {ack-every: 16}\nworkload: {kind: alltoall, bytes: 256KiB}\n")
        for mode in "packets", "flows":
            told = [self.json(self.scenario(hashed), *self.set(f"run.mode={mode}", f"hosts.front-end.storage={nodes}"))
                    for nodes in (0, 1)]
            self.assertEqual(told[0]["jct_ps"], told[1]["jct_ps"])
            self.assertEqual(told[0]["busiest_links"], told[1]["busiest_links"])

    def test_keys_of_leaves__without_leaves_are_warned_of(self):
        told = self.json(self.scenario(APART), *self.set("hosts.front-end.spines=2"))
        self.assertIn("hosts.front-end.spines: only for hosts.front-end.topology leaf-spine, and that is switch: no effect",
                      told["warnings"])


class Beside(SimCase):
    STEP = "  - {kind: step, layers: 1, hidden: 1024, heads: 16, ffn: 4096, vocabulary: 1000, sequence: 1024, dp: 4}\n"
    CHECKPOINT = "  - {kind: checkpoint, bytes: 10MB, message: 1MB, storage: 4-5, endpoints: 4}\n"
    HEAD = ("network: {topology: switch, endpoints: 6, host-rate: 400G}\nhosts: {gpu: H100, gpus: 1}\n"
            "transport: {ack-every: 16}\nworkload:\n")

    def test_workloads__beside_a_step_may_come_in_any_order(self):
        both = [self.json(self.scenario(self.HEAD + text)) for text in (self.STEP + self.CHECKPOINT, self.CHECKPOINT + self.STEP)]
        self.assertEqual(both[0]["steps"][0]["step"], both[1]["steps"][0]["step"])
        self.assertEqual([told["services"][0]["workload"] for told in both], [1, 0])
        self.assertEqual(both[0]["services"][0]["stored_ps"], both[1]["services"][0]["stored_ps"])
        self.assertEqual(both[0]["job"]["ranks"], 4)

    def test_dry_run__counts_the_checkpoint(self):
        def hops(text):
            told = self.sim("--dry-run", self.scenario(self.HEAD + text)).stdout
            return float(told.split("by packets: about ")[1].split(" k packet-hops")[0])
        self.assertGreater(hops(self.STEP + self.CHECKPOINT), hops(self.STEP) + 4)

    def test_what_cannot_run_beside_a_step__is_refused_with_the_cure(self):
        def refused(text, why, *settings):
            told = self.sim(self.scenario(self.HEAD + text), *settings, status=2).stderr
            self.assertRegex(told, r"s\.yaml:\d+:\d+: " + why)
        refused(self.STEP + "  - {kind: allreduce}\n", "workload.1: nothing else runs beside steps of training but "
                "checkpoint and input: leave it out, or the steps")
        for mode in "flows", "formula":
            refused(self.STEP + self.CHECKPOINT, "workload.1: beside steps of training it runs by packets alone: "
                    "run.mode: packets, or leave it out", "--set", f"run.mode={mode}")


if __name__ == "__main__":
    SimCase.build, SimCase.root = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
