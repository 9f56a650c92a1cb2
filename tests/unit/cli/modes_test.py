#!/usr/bin/env python3
"""modes_test BUILD ROOT: runs by flows and by formula, beside packets (run.mode)."""

import json
import pathlib
import signal
import subprocess
import sys
import unittest

from sim_case import TINY, SimCase

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


class Modes(SimCase):
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

    def test_flows__take_the_ways_that_hashes_choose_for_packets(self):
        """Two spines: which flows meet is luck, and the same by both modes. Switches that spray leave nothing to it."""
        hashed = self.scenario(NARROW.replace("spines: 1", "spines: 2").replace("fabric-rate: 200G", "fabric-rate: 100G"))
        sprayed = ["hosts.placement=spread", "network.switch.routing=spray", "transport.endpoint=ideal"]
        for name, settings, differs in (("spread", ["hosts.placement=spread"], 0.01), ("neighbours", [], 0.01),
                                        ("experts", [*EXPERTS, "workload.ep=4"], 0.01), ("sprayed", sprayed, 0.02),
                                        ("stages, tokens and gradients", [*EXPERTS, "workload.ep=4", "workload.pp=2",
                                                                          "workload.overlap-gradients=yes"], 0.05)):
            with self.subTest(name):
                by = {mode: self.step(hashed, mode, *settings)["time_ps"] for mode in ("packets", "flows")}
                self.assertAlmostEqual(by["flows"] / by["packets"], 1, delta=differs)

    def test_flows__have_the_qps_that_packets_have(self):
        """Four spines whose links have a quarter of a host's rate: one QP has one path, several more; the same by both modes."""
        text = NARROW.replace("spines: 1", "spines: 4").replace("fabric-rate: 200G", "fabric-rate: 25G")
        hashed, times = self.scenario(text), []
        for settings, differs in (([], 0.01), (["job.nccl.qps=4"], 0.05), (["job.nccl.qps=16", "job.nccl.split-data=yes"], 0.01)):
            settings = [*settings, "hosts.placement=spread"]
            by = {mode: self.step(hashed, mode, *settings)["time_ps"] for mode in ("packets", "flows", "formula")}
            self.assertAlmostEqual(by["flows"] / by["packets"], 1, delta=differs)
            times.append((by["packets"], by["formula"]))
        self.assertLess(times[1][0], 0.9 * times[0][0])
        self.assertLess(times[2][0], 0.9 * times[1][0])
        self.assertEqual(len({formula for _, formula in times}), 1)

    def test_step__keeps_its_rails_as_nccl_is_told(self):
        """By every mode as hosts.keeps-rails has it."""
        rails = self.scenario(NARROW.replace(NARROW.split("\n")[2], "network: {topology: rail, machines: 4, nics-a-machine: 4, leaves: 1, spines: 2, "
                                             "host-rate: 100G}").replace("gpus: 1", "gpus: 4").replace("layers: 4, ", "layers: 4, pp: 2, "))
        for mode in ("packets", "flows", "formula"):
            by = {(keeps, pxn): self.step(rails, mode, "hosts.placement=spread", *EXPERTS, "workload.ep=8", f"hosts.keeps-rails={keeps}",
                                          f"job.nccl.pxn={pxn}")
                  for keeps in ("yes", "no") for pxn in ("as-hosts", "yes", "no")}
            self.assertEqual([by["no", "yes"], by["yes", "no"]], [by["yes", "as-hosts"], by["no", "as-hosts"]])
            if mode == "packets":
                self.assertNotEqual(by["yes", "yes"], by["no", "no"])

    def test_flows__are_the_formula_where_nothing_is_shared(self):
        example = self.root / "examples/llama3-70b-1024.yaml"
        by = {mode: self.step(example, mode, "transport.ack-every=1000") for mode in ("flows", "formula")}
        self.assertAlmostEqual(by["flows"]["time_ps"] / by["formula"]["time_ps"], 1, delta=1e-4)
        self.assertIn("by flows: links are shared max-min fairly", self.sim(example, "--set", "run.mode=flows").stdout)

    def test_flows__of_replicas_do_not_hold_each_other_up(self):
        """Pipelines over hashed ways: as one timeline for all replicas these steps were 8 to 13% too long."""
        few_ways = self.scenario("""
name: pipelines over hashed ways
network: {topology: leaf-spine, endpoints: 32, leaves: 8, spines: 4, host-rate: 100G, fabric-rate: 100G, switch: {profile: ideal}}
hosts: {gpu: H100, gpus: 1, placement: spread}
transport: {cc: none, mtu: 4096, ack-every: 16}
workload:
  - {kind: step, layers: 8, hidden: 1024, heads: 16, ffn: 1024, vocabulary: 1000, sequence: 4096, batch: 64, pp: 8, dp: 4}
""")
        for seed in (1, 2, 4):
            by = {mode: self.step(few_ways, mode, f"run.seed={seed}")["time_ps"] for mode in ("packets", "flows")}
            self.assertAlmostEqual(by["flows"] / by["packets"], 1, delta=0.04)

    def test_rings__share_the_ports_of_slow_gpus_as_packets_do(self):
        """A host's eight NICs have more than a GPU's port. If all rings were at the port at once these were 8 and 26% too long."""
        gradients = self.scenario("""
name: gradients on A100 hosts
network: {topology: rail, machines: 4, nics-a-machine: 8, leaves: 1, host-rate: 400G, host-delay: 500ns, switch: {profile: ideal}}
hosts: {gpu: A100}
transport: {cc: none, mtu: 4096, ack-every: 16}
workload:
  - {kind: step, layers: 2, heads: 8, vocabulary: 1000, sequence: 256, batch: 32, micro-batch: 1, zero: 0}
""")
        for hidden in (256, 512):
            shape = (f"workload.hidden={hidden}", f"workload.ffn={4 * hidden}")
            by = {mode: self.step(gradients, mode, *shape)["exposed_ps"]["dp"] for mode in ("packets", "flows")}
            self.assertAlmostEqual(by["flows"] / by["packets"], 1, delta=0.03)

    def test_check__tells_the_error_beside_packets(self):
        narrow = self.scenario(NARROW)
        told = self.json(narrow, "--set", "run.mode=flows", is_checked=True)["steps"][0]
        error, check = told["error"], told["check"]
        self.assertLess(abs(error["step"]), 0.01)
        self.assertEqual((error["worst_phase"]["name"], check["layers"], check["micro_batches"], check["bytes_part"]), ("dp", 1, 1, 1))
        # The formula sees no contention: nearly half of the time is missing.
        spread = ("--set", "run.mode=formula", "--set", "hosts.placement=spread")
        error = self.json(narrow, *spread, is_checked=True)["steps"][0]["error"]
        self.assertLess(error["worst_phase"]["error"], -0.4)
        self.assertRegex(self.sim(narrow, *spread, is_checked=True).stdout, r"\nerror   -4\d\.\d+% of the step, -4\d\.\d+% of dp\n")

    def test_faults__are_refused_where_no_packet_meets_them(self):
        faulty = self.scenario(NARROW.replace("profile: ideal}}", "profile: ideal}, faults: [{link: endpoint 0 up, loss: 1%}]}"))
        for mode in ("flows", "formula"):
            self.assertRegex(self.sim(faulty, "--set", f"run.mode={mode}", status=2).stderr,
                             r"s.yaml:3:\d+: network.faults: .*run.mode: packets")
        self.assertEqual(self.json(faulty)["end"], "done")

    def test_step__goes_on_after_a_link_was_down(self):
        """A host that is cut off for a while, and an uplink that stays down: its flows meet others on the other ways."""
        network = NARROW[:NARROW.index("hosts:")].splitlines()[-1]
        cut_off = "network: {topology: switch, endpoints: 16, host-rate: 100G, switch: {profile: ideal}, faults: [{link: endpoint 3, %s}]}"
        uplink = network.replace("spines: 1", "spines: 4").replace("fabric-rate: 200G", "fabric-rate: 100G").replace(
            "ideal}}", "ideal}, faults: [{link: switch 0 port 4, %s, detection: 100us}]}")
        # At once, after the timeout, and by the other ways.
        for faulty, outage, longer in ((cut_off, "down: 20ms, up: 21ms", 1e9), (cut_off, "down: 10ms, up: 50ms", 4e10), (uplink, "down: 10ms", 1e10)):
            with self.subTest(outage):
                spread = NARROW.replace("gpus: 1}", "gpus: 1, placement: spread}").replace("ack-every: 16", "ack-every: 16, timeout: 20ms").replace("seed: 1", "seed: 3")
                scenario = self.scenario(spread.replace(network, faulty % outage))
                by = {mode: self.step(scenario, mode)["time_ps"] for mode in ("packets", "flows")}
                steady = self.step(scenario, "flows", "network.faults.0.up=0", "network.faults.0.down=100s")["time_ps"]
                self.assertAlmostEqual(by["flows"] / by["packets"], 1, delta=0.03)
                self.assertGreater(by["flows"] - steady, 0.9 * longer)

    def test_step__that_a_link_ends_is_refused_by_flows(self):
        scenario = self.scenario(NARROW.replace("ideal}}", "ideal}, faults: [{link: endpoint 3, down: 5ms}]}"))
        self.assertIn("network.faults: the step has no end: a link is down for longer than messages are sent again",
                      self.sim(scenario, "--set", "run.mode=flows", status=2).stderr)
        self.assertIn("network.faults.0.flap: in a step by flows a link goes down once",
                      self.sim(scenario, "--set", "run.mode=flows", "--set", "network.faults.0.up=6ms", "--set", "network.faults.0.flap=9ms", status=2).stderr)
        self.assertIn("network.faults: a formula knows no link", self.sim(scenario, "--set", "run.mode=formula", status=2).stderr)

    def test_link__may_be_slow_by_packets_and_by_flows(self):
        """A quarter of its rate: the incast's sender there is the last, and its 20 MB take as long as 80."""
        steady = TINY.replace("20kB", "20MB").replace("buffer: 0", "buffer: 0, flow-control: pfc").replace("flow-control: drops, ", "")
        slow = steady.replace("workload:", "  faults: [{link: endpoint 1, rate: 20G}]\nworkload:")
        by = {mode: [self.json(self.scenario(text), "--set", f"run.mode={mode}")["jct_ps"] for text in (steady, slow)]
              for mode in ("packets", "flows")}
        for one, other in zip(*by.values()):
            self.assertAlmostEqual(one / other, 1, delta=0.01)
        self.assertAlmostEqual(by["flows"][1] / by["flows"][0], 100 / 20 / 3, delta=0.01)
        self.assertIn("network.faults.0.rate is not below the link's own: write a lower one",
                      self.sim(self.scenario(slow.replace("20G", "100G")), status=2).stderr)
        self.assertNotIn("has no effect", self.sim(self.scenario(slow)).stderr)

    def test_check__takes_a_part_of_the_bytes(self):
        narrow = self.scenario(NARROW)
        hops = [self.json(narrow, "--set", "run.mode=flows", "--exact-check", part, is_checked=True)["steps"][0]["check"]["packet_hops"]
                for part in ("10%", "50%")]
        self.assertAlmostEqual(hops[1] / hops[0], 5, delta=0.2)
        for wrong in ("0", "101%", "many"):
            self.assertIn("--exact-check takes a part", self.sim(narrow, "--set", "run.mode=flows", "--exact-check", wrong,
                                                                 status=2, is_checked=True).stderr)

    def test_check__that_is_interrupted_leaves_the_result(self):
        """It is not asked for one that never ends: the step's result is there, and says that its error is not known."""
        large = self.root / "examples/llama3-70b-1024.yaml"
        command = [self.build / "src/cli/verbena", "sim", large, "--set", "run.mode=flows", "--progress", "--json"]
        with subprocess.Popen(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as started:
            self.addCleanup(started.kill)
            line = started.stderr.readline()
            while line and not line.startswith("the check: "):
                line = started.stderr.readline()
            started.send_signal(signal.SIGINT)
            told = json.loads(started.communicate(timeout=60)[0])["steps"][0]
        self.assertEqual((told["error"], told["unchecked_because"]), (None, "it was interrupted"))

    def test_flows__of_collectives_tell_their_error(self):
        """Two collectives that cross one spine: 100 % of their bytes are a few seconds by packets, so the error is exact."""
        both = self.scenario(NARROW[:NARROW.index("hosts:")].replace("a small step", "two collectives") + """
transport: {cc: none, mtu: 4096}
workload:
  - {kind: allreduce, first: 0, endpoints: 8, bytes: 4MB}
  - {kind: alltoall, first: 8, endpoints: 8, bytes: 8MB}
run: {seed: 1}
""")
        packets = self.json(both)
        self.assertEqual((packets["mode"], packets["error"]), ("packets", {"step": 0}))
        flows = self.json(both, "--set", "run.mode=flows", is_checked=True)
        self.assertAlmostEqual(flows["error"]["step"], flows["jct_ps"] / packets["jct_ps"] - 1, delta=1e-5)
        self.assertLess(abs(flows["error"]["step"]), 0.02)
        self.assertLess(abs(flows["error"]["worst_phase"]["error"]), 0.05)
        self.assertEqual((flows["check"]["bytes_part"], flows["check"]["packet_hops"]), (1, packets["packet_hops"]))
        part = self.json(both, "--set", "run.mode=flows", "--exact-check", "10%", is_checked=True)
        self.assertAlmostEqual(part["check"]["packet_hops"] / packets["packet_hops"], 0.1, delta=0.01)
        self.assertEqual(part["result_hash"], flows["result_hash"])
        self.assertNotIn("error", self.json(both, "--set", "run.mode=flows"))
        self.assertRegex(self.sim(both, "--set", "run.mode=flows", is_checked=True).stdout,
                         r"\nerror   [+-][\d.]+% of the time, at most [+-][\d.]+% of a workload: workload\.\d\n")

    def test_faster_networks__make_no_step_slower(self):
        """Rings that the GPUs' own ports hold up, too; and none gains more than the bound says."""
        example = self.root / "examples/own-model-64.yaml"
        for gpu in ("H800", "H100"):
            runs = [self.json(example, "--set", "workload.ep=1", "--set", f"hosts.gpu={gpu}", "--set", f"network.host-rate={rate}",
                              "--set", "workload.overlap-gradients=no")["steps"][0] for rate in ("200G", "400G", "800G", "10T")]
            times = [run["step"]["time_ps"] for run in runs]
            self.assertEqual(times, sorted(times, reverse=True), gpu)
            self.assertLessEqual(1 - times[-1] / times[0], runs[0]["network_bound"] + 1e-6)

    def test_steps__that_cannot_be_are_refused_by_every_mode(self):
        example = self.root / "examples/own-model-64.yaml"
        for mode in ("flows", "formula"):
            words = [example, "--set", f"run.mode={mode}"]
            self.assertRegex(self.sim(*words, "--set", "hosts.keeps-rails=no", status=2).stderr,
                             r"network.topology: no path leads between endpoints 0 and 1, .*hosts.keeps-rails: yes")
            self.assertIn("it would not run: network.topology: no path", self.sim("--dry-run", *words, "--set", "hosts.keeps-rails=no").stdout)
            long = ["--set", "workload.tp=8", "--set", "workload.ep=8", "--set"]
            self.assertIn("takes longer than 46 days", self.sim(*words, *long, "hosts.scale-up-delay=80000s", status=2).stderr)
            late = self.json(*words, *long, "hosts.scale-up-delay=100ms")["steps"][0]["step"]["time_ps"]
            self.assertAlmostEqual(self.json(*words, *long, "hosts.scale-up-delay=10s")["steps"][0]["step"]["time_ps"] / late, 100, delta=3)
        for words in (["--set", "run.mode=packets"], ["--no-check"]):
            self.assertIn("--exact-check is of runs", self.sim(example, "--exact-check", "10%", *words, status=2, is_checked=True).stderr)
        self.assertIn("run.limit: without packets", self.sim(example, "--set", "run.limit=1us").stderr)

    def test_flows__of_weights_are_checked_whole(self):
        weights = self.scenario("""
network: {topology: switch, endpoints: 6, host-rate: 100G, switch: {profile: ideal}}
transport: {cc: none}
workload:
  - {kind: allreduce, endpoints: 2, bytes: 1MB}
  - {kind: rl, first: 2, replicas: 3, trainers: 1, bytes: 20MB}
run: {mode: flows}
""")
        told = self.json(weights, is_checked=True)
        self.assertEqual(told["check"]["bytes_part"], 1)
        self.assertLess(abs(told["error"]["step"]), 0.02)
        self.assertIn("are not cut", self.json(weights, "--exact-check", "10%", is_checked=True)["unchecked_because"])

    def test_formula__is_of_steps_alone(self):
        """No run falls back to packets in silence."""
        tiny = self.scenario("run: {mode: formula}\n" + TINY)
        self.assertRegex(self.sim(tiny, status=2).stderr, r"s.yaml:1:13: run.mode: only steps of training have a formula: flows, or packets")
        step = self.scenario(NARROW.replace("run: {seed: 1}", "run: {mode: formula}"), "step.yaml")
        self.assertIn("only steps of training", self.sim(step, "--collective", "allreduce", "--sizes", "1M", status=2).stderr)
        self.scenario("src,dst,bytes\n0,1,1000\n", "f.csv")
        self.assertIn("only steps of training", self.sim(step, "--flows", "f.csv", status=2).stderr)

    def test_flows__of_lists_and_jobs_are_checked(self):
        job = self.scenario("num_ranks 2\nrank 0 {\na: calc 1000\nb: send 1000000b to 1 tag 1\nb requires a\n}\n"
                            "rank 1 {\na: recv 1000000b from 0 tag 1\n}\n", "two.goal")
        told = self.json("--job", job, self.scenario(), "--set", "run.mode=flows", is_checked=True)
        self.assertLess(abs(told["error"]["step"]), 0.005)
        told = self.json(self.scenario(), "--set", "run.mode=flows", "--set", "network.switch.flow-control=pfc", is_checked=True)
        self.assertIn("step", told["error"])


if __name__ == "__main__":
    Modes.build, Modes.root = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
