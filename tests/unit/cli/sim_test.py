#!/usr/bin/env python3
"""sim_test BUILD ROOT: what `verbena sim` prints and how it ends, and that every example runs. Small networks, few bytes."""

import csv
import json
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import unittest

from sim_case import SimCase, TINY

# So that each example takes a moment: what of it is made smaller.
SMALLER = {
    "permutation-1024": ["workload.bytes=20kB"],
    "permutation-8192": ["network.radix=16", "workload.bytes=8kB"],
    "permutation-128": ["workload.bytes=100kB"],
    "hpcc-fattree320": ["workload.bytes=200kB"],
    "all-to-all": ["workload.bytes=8KiB"],
    "allreduce-64": ["workload.bytes=4MiB"],
    "allreduce-1024": ["workload.bytes=1MiB", "network.radix=8"],
    "all-to-all-256": ["workload.bytes=1MiB"],
    "dgx-16": ["workload.bytes=8MiB"],
    "checkpoint": ["workload.bytes=80MB"],
    "two-jobs": ["workload.0.bytes=1MiB", "workload.1.bytes=1MiB"],
    "gpt13b-128": ["workload.layers=1", "workload.hidden=1280", "workload.ffn=5120", "workload.vocabulary=1000"],
    "rail": ["workload.0.bytes=100kB", "workload.1.bytes=100kB"],
    "torus": ["workload.bytes=64kB"],
    "flapping-link": ["workload.bytes=1MB"],
}

# The status of an example that shows what goes wrong: drops in a lossless class, or an end before all flows'.
STATUS = {"ring": 3, "ring network.switch.watchdog=0": 4, "incast network.switch.headroom=1kB": 3,
          "livelock transport.recovery=go-back-0": 4}


class Sim(SimCase):
    def settings(self, name):
        return [word for setting in SMALLER.get(name, []) for word in ("--set", setting)]

    def test_one_host__with_one_nic_runs(self):
        """What stays within a host has no way in the network, of which estimates and warnings are made."""
        host = self.scenario("""
network: {topology: switch, endpoints: 1, host-rate: 100G}
hosts: {gpus: 4, nics: 1, scale-up: 1T}
workload:
  - {kind: allreduce, bytes: 1MiB}
""")
        for more in [], ["--set", "transport.cc=hpcc"], ["--dry-run"]:
            self.sim(*more, host)

    def test_collective__by_an_algorithm_for_hosts_with_gpus(self):
        rows = json.loads(self.sim("--collective", "allreduce", "--algorithm", "hierarchical", "--sizes", "1M..2M",
                                   "--json", self.root / "examples/dgx-16.yaml").stdout)
        self.assertEqual([(row["algorithm"], row["bytes"]) for row in rows],
                         [("hierarchical", 1 << 20), ("hierarchical", 1 << 21)])

    def test_job__that_takes_longer_than_a_run_may_is_told(self):
        """200 computations of a day: no time wraps."""
        lines = "".join(f"l{i}: calc 86400000000000\n" + (f"l{i} requires l{i - 1}\n" if i else "") for i in range(200))
        job = self.scenario(f"num_ranks 2\nrank 0 {{\n{lines}}}\nrank 1 {{\na: calc 1\n}}\n", "days.goal")
        told = self.sim("--job", job, self.scenario(), status=4).stdout
        self.assertIn("ended: the limit of virtual time was reached, at 4320000 s", told)
        self.assertIn("151 operations never ended", told)

    def test_examples__all_run(self):
        examples = sorted((self.root / "examples").glob("*.yaml"))
        self.assertGreater(len(examples), 8)
        for example in examples:
            with self.subTest(example.name):
                result = self.json(example, *self.settings(example.stem), status=STATUS.get(example.stem, 0))
                if "steps" in result:
                    self.assert_steps_are_whole(result)
                if "flows_failed" not in result:  # by formula
                    continue
                self.assertEqual((result["end"], result["flows_failed"]), ("done", 0))
                self.assertEqual(result["flows_done"], result["operations"])
                self.assertTrue(result["name"])
                self.assert_was_foreseen(result)

    def assert_steps_are_whole(self, result):
        """What is told of a step sums up to it, and no network gains more than what is exposed."""
        last = max([of["step"]["time_ps"] for of in result["steps"]] + [of["stored_ps"] for of in result.get("services", [])])
        self.assertEqual((result["end"], result["jct_ps"]), ("done", last))
        for of in result["steps"]:
            step, exposed = of["step"], sum(of["step"]["exposed_ps"].values())
            self.assertAlmostEqual((step["compute_ps"] + exposed + step["bubble_ps"]) / step["time_ps"], 1, delta=1e-9)
            self.assertLessEqual(of["network_bound"], (exposed + step["bubble_ps"]) / step["time_ps"] + 1e-5)
            self.assertAlmostEqual(of["gpu_idle_share"], 1 - step["compute_ps"] / step["time_ps"], delta=1e-5)
            self.assertEqual(of["ranks"], of["tp"] * of["cp"] * of["pp"] * of["dp"])

    def test_step__is_told_and_refused(self):
        step = self.root / "examples/llama3-70b-1024.yaml"

        def of(*settings, status=0):
            return self.sim(step, *[word for setting in settings for word in ("--set", setting)], status=status)

        told = self.json(step)["steps"][0]
        self.assertEqual((told["parameters"], told["ranks"], told["micro_batches"]), (70553706496, 1024, 8))
        self.assertAlmostEqual(told["memory_bytes"]["sum"] / 75.8e9, 1, delta=0.002)
        self.assertIn("no network between hosts gains more than 12.92%", of().stdout)
        self.assertIn("1000 steps take 2.4 hours", of("workload.steps=1000").stdout)
        # A faster network comes to what the bound says, and no further.
        slow, bound = told["step"]["time_ps"], told["network_bound"]
        fast = self.json(step, "--set", "network.host-rate=100T", "--set", "network.host-delay=0")["steps"][0]["step"]["time_ps"]
        self.assertAlmostEqual(1 - fast / slow, bound, delta=0.001)
        self.assertLessEqual(1 - fast / slow, bound)
        # Stages that wait for each other because of the network count, too.
        staged = [self.root / "examples/gpt13b-128.yaml", "--set", "run.mode=formula", "--set", "workload.tp=1", "--set", "workload.pp=8",
                  "--set", "workload.batch=16", "--set", "workload.zero=3"]
        slow = self.json(*staged)["steps"][0]
        fast = self.json(*staged, "--set", "network.host-rate=100T", "--set", "network.host-delay=0")["steps"][0]["step"]["time_ps"]
        self.assertAlmostEqual(1 - fast / slow["step"]["time_ps"], slow["network_bound"], delta=0.002)
        self.assertGreater(slow["network_bound"], 0.1)  # hosts' own links hold up rings over whole hosts, too
        for settings, says in ((["workload.dp=1", "workload.tp=1", "workload.pp=65536", "workload.vpp=65536",
                                 "workload.schedule=interleaved"], "4294967296, and there are 80 layers"),
                               (["workload.dp=1", "workload.batch=536870912"], "more operations than a run takes"),
                               (["workload.sequence=100000000", "workload.memory=unchecked"], "each rank computes for 768 days"),
                               (["workload.tp=1", "workload.dp=1024", "workload.micro-batch=524288"], "does not divide the batch"),
                               (["workload.kv-heads=77"], "kv-heads: 77 does not divide"), (["workload.mfu=1e-12"], "write one from 0.001"),
                               (["workload.layers=10000", "workload.hidden=1000000", "workload.ffn=1000000", "workload.experts=65536",
                                 "workload.top-k=2"], "more than 1e+16 parameters"), (["workload.zero=0"], "it needs 180.8 GB of a GPU's 80"), (["workload.tp=3"], "tp: 3 does not divide"),
                               (["workload.model=gpt"], "there is no gpt; there are llama3-8b"),
                               (["workload.gpu=H1"], "there is no H1"), (["workload.dp=4096", "workload.batch=4096"], "and the network has 1024 ranks: lower one, or leave dp out"),
                               (["workload.dp=0", "workload.pp=256"], "8 x 1 x 256, and the network has 1024 ranks")):
            self.assertIn(says, of(*settings, status=2).stderr)
        self.assertIn("memory  180.8 GB", self.sim("--dry-run", step, "--set", "workload.zero=0").stdout)
        self.assertIn("memory  180.8 GB", of("workload.zero=0", "workload.memory=unchecked").stdout)
        self.assertIn("takes no --csv", self.sim(step, "--csv", "s.csv", status=2).stderr)
        own = self.root / "examples/own-model-64.yaml"
        h, layers, words, ffn, experts = 2048, 24, 64000, 4096, 16
        layer = 2 * h + 2 * h * h + 2 * h * 4 * 128 + h * experts
        self.assertEqual(self.json(own)["steps"][0]["parameters"], 2 * words * h + h + layers * (layer + experts * 3 * h * ffn))
        self.assertIn("how many of its experts", self.sim(step, "--set", "workload.experts=4", status=2).stderr)
        self.assertIn("llama3-405b", self.sim("--models").stdout)

    def test_step__by_formula_has_the_payload_of_all_ports_and_of_its_packets(self):
        def waits_for_gradients(*settings):
            words = [word for setting in ("run.mode=formula", *settings) for word in ("--set", setting)]
            return self.json(self.root / "examples/gpt13b-128.yaml", *words)["steps"][0]["step"]["exposed_ps"]["dp"]

        one = waits_for_gradients()
        self.assertAlmostEqual(waits_for_gradients("network.nic.ports=2", "network.leaves=2") / one, 0.5, delta=0.001)
        self.assertAlmostEqual(waits_for_gradients("transport.endpoint=tcp") / one, (4096 + 90) / (4096 + 82), delta=1e-4)

    def test_step__by_packets_is_as_by_formula(self):
        """Where nothing contends; whatever the model is cut by."""
        small = self.scenario("""
name: a small step
network:
  {topology: rail, machines: 2, nics-a-machine: 8, leaves: 1, host-rate: 400G, host-delay: 500ns, switch: {profile: ideal}}
hosts: {gpu: H100}
transport: {cc: none, mtu: 4096, ack-every: 16}
workload:
  - {kind: step, layers: 4, hidden: 1024, heads: 16, ffn: 4096, vocabulary: 1000, sequence: 2048, batch: 8}
run: {seed: 1}
""")
        cuts = {"tp and dp": ["tp=8", "dp=2"], "pp": ["tp=8", "pp=2", "dp=1"],
                "interleaved": ["tp=8", "pp=2", "vpp=2", "schedule=interleaved"],
                "cp": ["tp=4", "cp=2", "dp=2"], "experts": ["experts=8", "top-k=2", "ep=8", "dp=16", "batch=16"],
                "zero bubble": ["tp=8", "pp=2", "schedule=zero-bubble"], "zero 3": ["tp=8", "dp=2", "zero=3"],
                "overlapped": ["tp=8", "dp=2", "overlap-gradients=yes", "overlap-parameters=yes", "bucket=1000000"]}
        for name, settings in cuts.items():
            with self.subTest(name):
                words = [word for setting in settings for word in ("--set", f"workload.{setting}")]
                packets = self.json(small, *words)
                by_packets, by_formula = packets["steps"][0], self.json(small, *words, "--set", "run.mode=formula")["steps"][0]
                self.assertEqual((by_packets["mode"], by_formula["mode"]), ("packets", "formula"))
                for key in ("ranks", "parameters", "flop", "memory_bytes", "bytes_a_rank"):
                    self.assertEqual(by_packets[key], by_formula[key], key)
                ours, other = by_packets["step"], by_formula["step"]
                self.assertAlmostEqual(ours["compute_ps"] / other["compute_ps"], 1, delta=1e-6)
                self.assertAlmostEqual(ours["time_ps"] / other["time_ps"], 1, delta=0.05)
                sum_of = ours["compute_ps"] + sum(ours["exposed_ps"].values()) + ours["bubble_ps"]
                self.assertAlmostEqual(sum_of / ours["time_ps"], 1, delta=1e-9)
                self.assertEqual({self.json(small, *words, "--threads", threads)["result_hash"] for threads in (2, 4)},
                                 {packets["result_hash"]})
        told = self.sim(small, "--set", "workload.tp=8", "--csv", "t.csv", "--trace", "t.json", "--explain", "job").stdout
        self.assertIn("traceEvents", json.loads((self.place / "t.json").read_text()))
        self.assertIn("critical path:", told)
        self.assertRegex(told, r"step [\d.]+ [mu]s by packets")
        self.assertNotIn("by packets", self.sim(small, "--set", "workload.tp=8", "--set", "run.limit=10us", status=4).stdout)
        self.assertNotIn("steps", self.json(small, "--set", "workload.tp=8", "--set", "run.limit=10us", status=4))
        large = self.root / "examples/llama3-405b-16384.yaml"
        self.assertIn("run.mode: formula, or fewer ranks", self.sim(large, "--set", "run.mode=packets", "--set", "workload.batch=131072", status=2).stderr)

    def test_steps__may_be_several(self):
        step = (self.root / "examples/llama3-70b-1024.yaml").read_text()
        both = self.scenario(step.replace("workload:\n", "workload:\n  - {kind: step, model: gpt-13b, tp: 8, dp: 16, mfu: 50%}\n"))
        result = self.json(both, "--set", "workload.1.dp=64")
        self.assertEqual([of["model"] for of in result["steps"]], ["gpt-13b", "llama3-70b"])
        self.assert_steps_are_whole(result)
        self.assertEqual([(of["first"], of["ranks"]) for of in result["steps"]], [(0, 128), (128, 512)])
        mixed = self.scenario(step.replace("workload:\n", "workload:\n  - {kind: allreduce, bytes: 1MB}\n"))
        self.assertIn("nothing else runs beside", self.sim(mixed, status=2).stderr)

    def assert_was_foreseen(self, result):
        """Within a factor of 2: packet-hops, though not how many packets are sent again, and memory, but for a sanitizer's."""
        estimate = result["estimate"]
        if result["mode"] == "flows":
            self.assertEqual((estimate["packet_hops"], result["packet_hops"]), (0, 0))
        else:
            self.assertTrue(0.5 < estimate["packet_hops"] / result["packet_hops"] < 2, (estimate, result["packet_hops"]))
        if not self.is_sanitized():
            memory = (estimate["memory_bytes"] + estimate["waiting_bytes"]) / result["max_rss_bytes"]
            self.assertTrue(0.5 < memory < 2, (estimate, result["max_rss_bytes"]))

    def test_estimate__comes_true(self):
        """Of many flows, of other endpoints, of deep queues; CPU time by a machine that others use, within a factor of 6."""
        all_to_all = self.root / "examples/all-to-all.yaml"
        for arguments in ([all_to_all, "--set", "network.endpoints=128", "--set", "workload.bytes=20kB"],
                          [all_to_all, "--set", "network.endpoints=128", "--set", "workload.bytes=8kB", "--set",
                           "transport.endpoint=tcp"],
                          [self.root / "examples/permutation-1024.yaml", "--set", "workload.bytes=200kB"],
                          [self.root / "examples/permutation-1024.yaml", "--set", "workload.bytes=200kB", "--set",
                           "network.switch.profile=hpcc", "--set", "transport.ack-every=16"],
                          [self.root / "examples/permutation-128.yaml", "--set", "transport.endpoint=ideal"]):
            with self.subTest(arguments):
                result = self.json(*arguments)
                self.assert_was_foreseen(result)
                took = result["cpu_s"] + result["setup_cpu_s"]
                if not self.is_sanitized():
                    self.assertTrue(1 / 6 < result["estimate"]["cpu_s"] / took < 6, (result["estimate"], took))

    def test_examples__show_commands_that_work(self):
        """What stands in their comments, with the same things made smaller."""
        for example in sorted((self.root / "examples").glob("*.yaml")):
            for command in re.findall(r"^#  +build/verbena sim (.*)$", example.read_text(), re.M):
                words = re.findall(r'"[^"]*"|\S+', re.sub(r"  +#.*", "", command).strip())
                if "--compare" in words or "FILE" in words:
                    continue
                words = [str(self.root / word) if word.startswith("examples/") else word.replace("/tmp", str(self.place))
                         for word in words]
                status = STATUS.get(" ".join([example.stem] + words[2:]), STATUS.get(example.stem, 0))
                with self.subTest(command):
                    self.sim(*words, *self.settings(example.stem), status=status)

    def test_examples__show_what_they_say(self):
        """Each feature, and the same without it."""
        def of(example, *settings, status=0):
            words = [word for setting in settings for word in ("--set", setting)]
            return self.json(self.root / f"examples/{example}.yaml", *words, status=status)

        def longest(result, most=1 << 40):
            return max(flow["fct_ps"] for flow in result["flows"] if flow["bytes"] <= most)

        weighted, alike = of("classes"), of("classes", "network.switch.classes.0.weight=1")
        self.assertLess(max(flow["fct_ps"] for flow in weighted["flows"] if flow["bytes"] == 2000000), 1.1 * 4e6 * 80 * 4 / 3)
        self.assertEqual(weighted["jct_ps"], alike["jct_ps"])
        self.assertLess(longest(weighted, 4000), longest(of("classes", "network.switch.classes.2.strict=no"), 4000))
        infiniband, starved = of("infiniband"), of("infiniband", "network.switch.credits=8KiB")
        self.assertEqual((infiniband["drops"], infiniband["pauses"]), (0, 0))
        self.assertGreater(starved["jct_ps"], 4 * infiniband["jct_ps"])
        message = "workload.bytes=4KiB"
        self.assertLess(of("infiniband", message)["jct_ps"], of("infiniband", message, "network.switch.cut-through=no")["jct_ps"])
        spread = {routing: of("spraying", f"network.switch.routing={routing}") for routing in ("ecmp", "spray", "adaptive")}
        median = {routing: sorted(flow["fct_ps"] for flow in result["flows"])[len(result["flows"]) // 2]
                  for routing, result in spread.items()}
        self.assertLess(median["adaptive"], 0.97 * min(median["ecmp"], median["spray"]))
        self.assertEqual([len(spread[routing]["labels"]) for routing in spread], [0, 1, 1])
        drops = [of("shared-buffer", f"network.switch.classes.all.alpha={alpha}")["drops"] for alpha in (0.0625, 1, 8)]
        self.assertEqual(drops, sorted(drops, reverse=True))
        marked, unmarked = of("ecn"), of("ecn", "network.switch.classes.all.mark-max=0")
        self.assertGreater(marked["marked_packets"], 0)
        self.assertEqual((marked["pauses"], unmarked["marked_packets"], unmarked["pauses"] > 0), (0, 0, True))
        tcp = {variant: of("tcp", f"variant={variant}") for variant in ("lossless", "lossy", "infiniband", "cubic", "dctcp")}
        self.assertEqual([tcp[variant]["drops"] > 0 for variant in ("lossless", "lossy", "infiniband", "cubic")],
                         [False, True, False, True])
        self.assertGreater(tcp["lossless"]["pauses"], 0)
        self.assertGreater(tcp["dctcp"]["marked_packets"], 0)
        self.assertLess(tcp["dctcp"]["jct_ps"], tcp["cubic"]["jct_ps"])
        patient = of("tcp", "transport.rto-min=200ms", "transport.probe=0")
        self.assertGreater(patient["jct_ps"], 10 * tcp["cubic"]["jct_ps"])
        shares = {variant: [flow["fct_ps"] for flow in of("parking-lot", f"variant={variant}")["flows"]] for variant in ("pfc", "dcqcn")}
        self.assertLess(shares["pfc"][3], 1.01 * min(shares["pfc"]))
        self.assertLess(shares["pfc"][3], 0.8 * max(shares["pfc"]))
        self.assertLess(max(shares["dcqcn"]), 1.1 * min(shares["dcqcn"]))
        victim = {(variant, senders): of("victim-flow", f"variant={variant}", f"workload.0.senders={senders}")["flows"][-1]["fct_ps"]
                  for variant in ("pfc", "dcqcn") for senders in (4, 6)}
        self.assertGreater(victim["pfc", 6], 1.5 * victim["pfc", 4])
        self.assertGreater(victim["pfc", 4], 1.5 * max(victim["dcqcn", 4], victim["dcqcn", 6]))
        livelock = self.json(self.root / "examples/livelock.yaml", "--set", "transport.recovery=go-back-0", status=4)
        self.assertEqual((livelock["flows_done"], len(livelock["labels"]), of("livelock")["labels"]), (0, 1, []))
        flapping, steady = of("flapping-link"), of("flapping-link", *(f"network.faults.0.{key}=0" for key in ("down", "up", "flap")))
        self.assertGreater(flapping["lost"], steady["lost"])

    def test_json__has_what_scripts_rely_on(self):
        result = self.json(self.scenario())
        for key in ("packet_hops", "events", "cpu_s", "wall_s", "packet_hops_per_cpu_s", "payload_gb_per_cpu_s",
                    "max_rss_bytes", "jct_ps", "result_hash", "flows", "end", "end_text", "labels", "drops", "pauses"):
            self.assertIn(key, result)
        self.assertEqual([set(flow) >= {"src", "dst", "bytes", "start_ps", "fct_ps"} for flow in result["flows"]], [True] * 3)
        self.assertEqual(result["jct_ps"], max(flow["start_ps"] + flow["fct_ps"] for flow in result["flows"]))
        self.assertEqual(result["payload_bytes"], 60000)
        self.assertGreater(result["max_rss_bytes"], 1 << 20)
        self.assertEqual(result["labels"], [])

    def test_link_that_stays_down__fails_its_flows_by_name(self):
        scenario = self.scenario(TINY.replace("workload:", "  faults: [{link: endpoint 1, down: 1us}]\nworkload:"))
        said = self.sim(scenario, "--csv", "f.csv", status=1).stdout
        self.assertIn("1 of 3 flows that ended FAILED", said)
        self.assertRegex(said, r"flow \d from endpoint 1 to endpoint 3: retry exceeded; endpoint 1 up is down for good since 1 us")
        failed = [row["error"] for row in csv.DictReader((self.place / "f.csv").open()) if row["error"]]
        self.assertEqual(failed, ["retry exceeded; endpoint 1 up is down for good since 1 us"])
        result = self.json(scenario, status=1)
        self.assertEqual((result["end"], result["flows_done"], result["flows_failed"]), ("done", 3, 1))
        self.assertEqual([flow["error"] for flow in result["flows"] if "error" in flow], failed)
        self.assertIn("1 of 3 flows that ended FAILED", self.sim("--compare", scenario, "run.seed=1,2", status=1).stdout)

    def test_result__is_the_same_every_time(self):
        scenario = self.scenario()
        hashes = {self.json(scenario, "--threads", threads)["result_hash"] for threads in (1, 1, 2)}
        self.assertEqual(len(hashes), 1)

    def test_text__says_what_ran_and_how_it_ended(self):
        said = self.sim(self.scenario()).stdout
        for part in ("tiny", "4 endpoints (100 Gb/s)", "3 flows, 60 kB", "p99", "endpoint 3 down", "drops 0"):
            self.assertIn(part, said)

    def test_slowdown__of_a_flow_alone_is_1(self):
        for topology in ("{topology: switch, endpoints: 4}", "{topology: fat-tree, radix: 4, host-rate: 100G, fabric-rate: 400G}"):
            text = f"network: {topology}\nworkload: {{kind: incast, senders: 1, target: 3, bytes: 50001}}\n" \
                   "transport: {ack-every: 1}\n"
            for cut_through in ("yes", "no"):
                result = self.json(self.scenario(text), "--set", "network.switch.buffer=0", "--set",
                                   "network.switch.flow-control=drops", "--set", f"network.switch.cut-through={cut_through}")
                flow = result["flows"][0]
                self.assertEqual(flow["fct_ps"], flow["ideal_ps"], (topology, cut_through))

    def test_slowdown__knows_what_nics_are_like(self):
        text = "network: {topology: fat-tree, radix: 4, nic: {profile: connectx, pcie-rate: 37G, host-latency: 123ns}}\n" \
               "workload: {kind: incast, senders: 1, target: 3, bytes: 50001}\n"
        for endpoint in ("engine", "ideal"):
            flow = self.json(self.scenario(text), "--set", f"transport.endpoint={endpoint}")["flows"][0]
            self.assertEqual(flow["fct_ps"], flow["ideal_ps"])
            self.assertGreater(flow["fct_ps"], 50001 * 8 / 37e9 * 1e12)

    def test_golden__a_flow_alone_on_hpccs_tree(self):
        flows = self.place / "single.csv"
        flows.write_text("src,dst,bytes,start_ns\n0,319,2000000,0\n")
        result = self.json(self.root / "examples/hpcc-fattree320.yaml", "--flows", flows, "--cc", "none")
        self.assertEqual(result["flows"], [{"src": 0, "dst": 319, "bytes": 2000000, "start_ps": 0, "fct_ps": 179862080,
                                            "ideal_ps": 179862080}])

    def test_golden__an_incast_with_pauses_on_hpccs_tree(self):
        """Of 16: the receiver's link carries 8,000 packets without a gap, and the last is acknowledged."""
        flows = self.place / "incast.csv"
        flows.write_text("src,dst,bytes,start_ns\n" + "".join(f"{source},319,500000,0\n" for source in range(16)))
        # Without the rate uplinks have too little of what seven classes leave, and it costs nothing.
        for rate, keeps, is_paused in (("100G", "ports", False), ("0", "classes", True)):
            result = self.json(self.root / "examples/hpcc-fattree320.yaml", "--flows", flows, "--cc", "none", "--set",
                               f"network.switch.alpha-rate={rate}", "--set", f"network.switch.keeps={keeps}")
            self.assertEqual((result["jct_ps"], result["drops"], result["pauses"] > 0), (682902080, 0, is_paused))

    def test_golden__variants_as_the_simulator_of_hpccs_authors_has_them(self):
        """The last completion of the published runs: one alone, 2:1 and 16:1."""
        for name, published in (("hpcc", (195309, 1860529, 767617)), ("timely", (180180, 2482401, 684180))):
            for sources, size, end in zip(((0,), (0, 20), range(16)), (2000000, 10000000, 500000), published):
                flows = self.place / "flows.csv"
                flows.write_text("src,dst,bytes,start_ns\n" + "".join(f"{source},319,{size},0\n" for source in sources))
                result = self.json(self.root / "examples/hpcc-fattree320.yaml", "--flows", flows, "--cc", name)
                self.assertEqual((result["variant"], result["pauses"], result["drops"], result["warnings"]), (name, 0, 0, []))
                self.assertLess(abs(result["jct_ps"] / 1000 / end - 1), 0.01, (name, sources))

    def test_set__changes_the_scenario_and_is_checked(self):
        scenario = self.scenario()
        self.assertEqual(self.json(scenario, "--set", "workload.bytes=1kB", "--seed", "9")["payload_bytes"], 3000)
        self.assertIn("did you mean workload.*.bytes?", self.sim(scenario, "--set", "workload.byts=1", status=2).stderr)
        self.assertIn("KEY=VALUE", self.sim(scenario, "--set", "nothing", status=2).stderr)

    def test_load__of_a_run_that_is_cut_short_is_no_more_than_all(self):
        result = self.json(self.root / "examples/incast.yaml", "--set", "run.limit=1us", status=4)
        loads = [link["load"] for link in result["busiest_links"]]
        self.assertTrue(0.9 < max(loads) <= 1, loads)

    def test_cc__that_is_not_there_says_which_are(self):
        said = self.sim(self.scenario(), "--cc", "bbr", status=2).stderr
        self.assertIn('no congestion control "bbr"; there are none, window', said)

    def test_variants__are_chosen_by_name_and_told(self):
        scenario = self.scenario(TINY + "transport: {mtu: 1024}\nvariants:\n  small: {transport: {mtu: 256}}\n"
                                 "  window: {transport: {mtu: 512, cc: window}}\n")
        for arguments, wanted in (((), ("", "none", 1024)), (("--cc", "small"), ("small", "none", 256)),
                                  (("--set", "variant=window"), ("window", "window", 512)),
                                  (("--cc", "small", "--cc", "window"), ("window", "window", 512)),
                                  (("--cc", "small", "--set", "transport.mtu=4096"), ("small", "none", 4096)),
                                  (("--set", "variant=small", "--cc", "none"), ("small", "none", 256))):
            result = self.json(scenario, *arguments)
            self.assertEqual((result["variant"], result["cc"], result["mtu"]), wanted)
        self.assertIn("cc none, variant small, seed", self.sim(scenario, "--cc", "small").stdout)
        runs = self.json("--compare", scenario, "transport.cc=none,small,window")
        self.assertEqual([(run["result"]["variant"], run["result"]["mtu"]) for run in runs],
                         [("", 1024), ("small", 256), ("window", 512)])
        runs = self.json("--compare", scenario, "variant=small,window")
        self.assertEqual([run["result"]["mtu"] for run in runs], [256, 512])
        self.assertIn("of variants there are small, window; did you mean small?",
                      self.sim(scenario, "--cc", "smal", status=2).stderr)
        self.assertIn("no such variant; there are small, window\n", self.sim(scenario, "--set", "variant=x", status=2).stderr)

    def test_warnings__are_said_once_and_to_scripts(self):
        scenario = self.scenario(TINY + "transport: {first-window: 2MB, largest-window: 1MB}\n")
        done = self.sim("--json", scenario)
        [warning] = json.loads(done.stdout)["warnings"]
        self.assertIn("flows begin with largest-window", warning)
        self.assertEqual(done.stderr, f"verbena sim: warning: {warning}\n")
        done = self.sim("--json", "--compare", scenario, "transport.cc=none,window")
        self.assertEqual([run["result"]["warnings"] for run in json.loads(done.stdout)], [[warning], [warning]])
        self.assertEqual(done.stderr, f"verbena sim: cc=none: warning: {warning}\n")
        self.assertEqual(self.json(self.scenario())["warnings"], [])

    def test_warned__headroom_loses_packets_and_what_is_wanted_does_not(self):
        incast = self.root / "examples/incast.yaml"
        done = self.sim("--json", incast, "--set", "network.switch.headroom=1kB", status=3)
        needed = re.search(r"headroom is 1 kB, and endpoint 0 up needs ([0-9.]+) kB", done.stderr)[1]
        self.assertGreater(json.loads(done.stdout)["lossless_drops"], 0)
        done = self.sim("--json", incast, "--set", f"network.switch.headroom={float(needed) + 0.01:.2f}kB")
        self.assertEqual((json.loads(done.stdout)["lossless_drops"], done.stderr), (0, ""))

    def test_explain__says_where_pauses_began_and_who_is_a_victim(self):
        """0, 4 and 5 send to 7; 1 sends to 6, behind 0 on the way to the other leaf, and to 2, on its own."""
        scenario = self.scenario("network: {topology: leaf-spine, endpoints: 8, leaves: 2, spines: 1, host-rate: 100G,\n"
                                 "  switch: {profile: hpcc, buffer: 8MB, classes: {all: {limit: 50kB, mark-max: 0}}}}\n")
        flows = self.place / "flows.csv"
        flows.write_text("src,dst,bytes,start_ns\n0,7,1000000,0\n4,7,1000000,0\n5,7,1000000,0\n1,6,1000000,0\n1,2,100000,0\n"
                         "1,2,1000,90000000\n")
        result = self.json(scenario, "--flows", flows, "--explain", "pfc")
        explained = result["explain"]
        self.assertEqual((explained["fired"], explained["off"]), (True, None))
        self.assertGreaterEqual(explained["pauses"], result["pauses"])    # some are taken back before they have left
        worst = {each["name"]: each for each in explained["worst"]}
        self.assertEqual([each["paused_ps"] for each in explained["worst"]],
                         sorted((each["paused_ps"] for each in explained["worst"]), reverse=True))
        one, spine = worst["endpoint 1 up"], worst["switch 2 port 1"]
        self.assertEqual((one["stopped"], one["victim_count"], one["victims"]), ([1], 2, [3, 4]))
        self.assertEqual(one["began_before"]["name"], "endpoint 7 down")
        self.assertEqual([(queue["name"], queue["paused"]) for queue in one["queues"]], [("switch 0 port 4", True)])
        self.assertEqual((spine["stopped"], spine["victims"], spine["flows"][0]["src"]), ([0, 1], [3, 4], 0))
        self.assertEqual(worst["endpoint 4 up"]["victim_count"], 0)
        self.assertGreaterEqual(one["first"]["bytes"], one["first"]["threshold_bytes"])
        said = self.sim(scenario, "--flows", flows, "--explain", "pfc").stdout
        for part in (f"why PAUSE fired: {explained['pauses']} times", "it began in the queue before endpoint 7 down: no marks are made there",
                     "VICTIMS: 2 of their flows do not go there: 1 -> 6, 1 -> 2", "switch 0 port 4 (100%, which was paused itself)",
                     "in the end it stopped 2 endpoints: 0-1"):
            self.assertIn(part, said)
        self.assertNotIn("explain", self.json(scenario, "--flows", flows))

    def test_explain__says_why_pause_did_not_fire(self):
        for arguments, part in (((self.scenario(),), "PFC is off: flow-control is drops"),
                                ((self.root / "examples/infiniband.yaml",), "PFC is off: flow-control is credits"),
                                ((self.scenario(), "--set", "network.switch.flow-control=pfc"), "no bound"),
                                ((self.root / "examples/all-to-all.yaml", *self.settings("all-to-all"), "--set", "workload.class=7"),
                                 "class is not lossless"),
                                ((self.root / "examples/hpcc-fattree320.yaml", *self.settings("hpcc-fattree320")),
                                 "buffer is large enough"),
                                ((self.root / "examples/ecn.yaml",), "marks slowed senders down before")):
            said = self.sim(*arguments, "--explain", "pfc").stdout
            self.assertIn("why PAUSE did not fire\n", said)
            self.assertIn(part, said)
        explained = self.json(self.root / "examples/ecn.yaml", "--explain", "pfc")["explain"]
        self.assertEqual((explained["fired"], explained["worst"]), (False, []))
        self.assertLess(explained["nearest"]["moment"]["bytes"], explained["nearest"]["moment"]["threshold_bytes"])
        self.assertIn("explains pfc or job, not 'ecn'", self.sim(self.scenario(), "--explain", "ecn", status=2).stderr)
        self.assertIn("not of --compare", self.sim("--compare", self.scenario(), "--explain", "pfc", status=2).stderr)

    def test_errors__name_file_line_and_column(self):
        scenario = self.scenario("network:\n  topologi: torus\n")
        self.assertEqual(self.sim(scenario, status=2).stderr.split(": ")[0], f"{scenario}:2:3")
        self.assertIn("network: ", self.sim(self.scenario(TINY.replace("endpoints: 4", "endpoints: 0")), status=2).stderr)
        self.assertIn("No such file", self.sim("absent.yaml", status=1).stderr)
        self.assertIn("one scenario", self.sim(status=2).stderr)
        self.assertIn("workload", self.sim(self.scenario(TINY.split("workload")[0]), status=2).stderr)

    def test_limit__ends_a_run_with_4(self):
        done = self.sim(self.scenario(), "--set", "run.limit=1us", status=4)
        self.assertIn("3 flows are open", done.stdout)
        self.assertEqual(self.json(self.scenario(), "--set", "run.limit=1us", status=4)["end"], "limit")

    def test_interrupt__ends_what_runs_and_tells_of_it(self):
        """And of a comparison the runs that were to come."""
        long = self.scenario(TINY.replace("20kB", "16TB").replace("senders: 3", "senders: 1"))
        for arguments in (["--json", long], ["--compare", "--json", long, "run.seed=1,2,3"]):
            started = subprocess.Popen([self.build / "src/cli/verbena", "sim", "--progress", *arguments], text=True, cwd=self.place,
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            self.addCleanup(started.kill)
            self.assertRegex(started.stderr.readline(), r"about .* packet-hops for 16 TB of payload: .* of CPU time, .* of memory")
            self.assertRegex(started.stderr.readline(), "0 of 1 flows")    # it runs
            started.send_signal(signal.SIGINT)
            said, _ = started.communicate(timeout=60)
            result = json.loads(said)
            self.assertEqual(started.returncode, 4)
            self.assertEqual([run["result"]["end"] for run in result] if isinstance(result, list) else [result["end"]],
                             ["stopped"])

    def test_progress__says_how_long_it_will_take(self):
        """By the packets that were sent, as flows may all end last."""
        long = self.scenario(TINY.replace("20kB", "20GB").replace("senders: 3", "senders: 1"))
        started = subprocess.Popen([self.build / "src/cli/verbena", "sim", "--progress", long], text=True, cwd=self.place,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self.addCleanup(started.kill)
        seen = ""
        while "s left" not in seen:
            line = started.stderr.readline()
            self.assertIn("0 of 1 flows", line, "it ended before it said so")
            seen += line
        started.kill()
        started.communicate(timeout=60)

    def test_files__that_cannot_be_written_or_read_are_named(self):
        scenario = self.scenario()
        done = self.sim(scenario, "--csv", self.place / "absent/flows.csv", status=1)
        self.assertIn("absent/flows.csv: No such file", done.stderr)
        self.assertEqual(done.stdout, "")    # before anything ran
        job = self.scenario("num_ranks 1\nrank 0 {\ncalc 5\n}\n", "job.goal")
        done = self.sim(scenario, "--job", job, "--trace", self.place / "absent/t.json", status=1)
        self.assertIn("absent/t.json: No such file", done.stderr)
        self.assertEqual(done.stdout, "")
        self.assertIn("/dev/full: No space left", self.sim(scenario, "--job", job, "--trace", "/dev/full", status=1).stderr)
        for option in ("--csv", "--pcap"):
            said = self.sim(scenario, option, "/dev/full", "--capture", "endpoint 0 up", status=1).stderr
            self.assertIn("/dev/full: No space left", said)
        empty = self.place / "empty.csv"
        empty.write_text("src,dst,bytes,start_ns\n")
        self.assertIn("empty.csv: nothing is sent", self.sim(scenario, "--flows", empty, status=2).stderr)
        self.assertIn("Is a directory", self.sim(self.place, status=1).stderr)
        self.assertIn("Is a directory", self.sim(scenario, "--flows", self.place, status=2).stderr)

    def test_json__is_utf8_whatever_names_are(self):
        done = subprocess.run([self.build / "src/cli/verbena", "sim", "--json", self.scenario(), "--set",
                               b"name=\xff\xc3\xa9\xc3 \xed\xa0\x80\xe2\x82\xac"], check=True, stdout=subprocess.PIPE)
        self.assertEqual(json.loads(done.stdout.decode())["name"], "\ufffd\u00e9\ufffd \ufffd\ufffd\ufffd\u20ac")

    def test_trims__are_told_by_switch(self):
        scenario = self.scenario(TINY.replace("buffer: 0, class-count: 1", "port-buffer: 20kB, class-count: 2, trim: 64,"
                                              "classes: {1: {strict: yes}}"))
        result = self.json(scenario, "--set", "transport.timeout=1ms", "--set", "transport.ack-class=1")
        self.assertGreater(result["trimmed_packets"], 0)
        self.assertEqual(result["trimmed_by_switch"], [{"switch": 0, "packets": result["trimmed_packets"]}])
        self.assertIn(f"trimmed {result['trimmed_packets']} at 1 switch, most at switch 0: {result['trimmed_packets']}\n",
                      self.sim(scenario, "--set", "transport.timeout=1ms", "--set", "transport.ack-class=1").stdout)
        self.assertIn("must be strict", self.sim(scenario, "--set", "network.switch.classes.1.strict=no", status=2).stderr)

    def test_lossless_drops__end_with_3_and_are_loud(self):
        done = self.sim(self.root / "examples/incast.yaml", "--set", "network.switch.headroom=1", status=3)
        self.assertIn("DROPS IN A LOSSLESS CLASS: ", done.stdout)

    def test_deadlock__ends_with_4_and_says_who_waits_for_whom(self):
        done = self.sim(self.root / "examples/ring.yaml", "--set", "network.switch.watchdog=0", status=4)
        self.assertIn("ended: deadlock", done.stdout)
        self.assertEqual(len(re.findall(r"^  switch \d port \d waits for$", done.stdout, re.M)), 5)
        self.assertIn("5 flows are open", done.stdout)

    def test_deadlock__is_named_in_json_link_by_link(self):
        result = self.json(self.root / "examples/ring.yaml", "--set", "network.switch.watchdog=0", status=4)
        self.assertEqual(result["end"], "deadlock")
        self.assertEqual(result["flows_done"], 0)
        names = [link["name"] for link in result["cycle"]]
        self.assertEqual(len(set(names)), 5)
        for link in result["cycle"]:
            self.assertRegex(link["name"], r"^switch \d port \d$")
            self.assertGreater(link["paused_ps"], 0)

    def test_csv__has_a_line_a_flow(self):
        self.sim(self.scenario(), "--csv", "flows.csv")
        with open(self.place / "flows.csv", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual([row["src"] for row in rows], ["0", "1", "2"])
        self.assertEqual({row["error"] for row in rows}, {""})
        self.assertGreaterEqual(float(rows[0]["slowdown"]), 1)

    def test_labels__are_told(self):
        result = self.json(self.scenario(), "--set", "network.switch.routing=spray")
        self.assertEqual(result["labels"], ["sprayed over go-back-N"])

    def test_ideal_endpoints__are_labelled_in_all_that_is_printed(self):
        scenario, label = self.scenario(), "no engines: not RoCE"
        ideal = ("--set", "transport.endpoint=ideal")
        self.assertIn(f"NOTE: {label}\n", self.sim(scenario, *ideal, "--csv", "flows.csv").stdout)
        with open(self.place / "flows.csv", encoding="utf-8") as file:
            self.assertEqual({row["note"] for row in csv.DictReader(file)}, {label})
        said = self.sim("--compare", scenario, "transport.endpoint=engine,ideal").stdout
        self.assertEqual(said.count(f"NOTE: {label}"), 1)
        result = self.json(scenario, *ideal, "--set", "network.switch.routing=spray")
        self.assertEqual((result["endpoint"], result["labels"]), ("ideal", [label, "sprayed, to an ideal that ignores order"]))
        self.assertIn("no congestion control", self.sim(scenario, *ideal, "--cc", "window", status=2).stderr)
        self.assertIn("to be captured", self.sim(scenario, *ideal, "--pcap", "c", "--capture", "endpoint 0 up", status=2).stderr)

    def test_tcp__is_labelled_in_all_that_is_printed(self):
        scenario, label = self.scenario(), "TCP: not RoCE"
        free = "TCP's hosts take no CPU time (transport.cpu-packet, cpu-byte)"
        tcp = ("--set", "transport.endpoint=tcp")
        said = self.sim(scenario, *tcp, "--csv", "flows.csv").stdout
        for part in (f"NOTE: {label}\n", f"NOTE: {free}\n", ", cc cubic,"):
            self.assertIn(part, said)
        with open(self.place / "flows.csv", encoding="utf-8") as file:
            self.assertEqual({row["note"] for row in csv.DictReader(file)}, {f"{label}; {free}"})
        self.assertEqual(self.sim("--compare", scenario, "transport.endpoint=engine,tcp").stdout.count(f"NOTE: {label}"), 1)
        result = self.json(scenario, *tcp, "--set", "transport.tcp=dctcp", "--set", "transport.cpu-packet=1us",
                           "--set", "network.switch.routing=spray")
        self.assertEqual((result["endpoint"], result["cc"], result["ack_every"]), ("tcp", "dctcp", 2))
        self.assertEqual(result["labels"], [label, "sprayed, over TCP, which takes reordering for loss"])
        self.assertIn("transport.tcp", self.sim(scenario, *tcp, "--cc", "window", status=2).stderr)
        self.assertIn("newreno", self.sim(scenario, *tcp, "--set", "transport.tcp=vegas", status=2).stderr)

    def test_tcp__alone_takes_what_the_network_takes_while_its_first_window_lasts(self):
        text = TINY.replace("incast, target: 3, senders: 3, bytes: 20kB", "incast, target: 3, senders: 1, bytes: 40kB")
        flow, = self.json(self.scenario(text), "--set", "transport.endpoint=tcp")["flows"]
        self.assertEqual(flow["fct_ps"], flow["ideal_ps"])

    def test_collective__is_a_table_with_the_closed_form(self):
        rows = [line.split() for line in self.sim("--collective", "allreduce", "--sizes", "64K..4M", "--set", "transport.ack-every=64",
                                                    self.scenario()).stdout.splitlines()
                if not line.startswith("#")]
        self.assertEqual([int(row[0]) for row in rows], [65536 << i for i in range(7)])
        for size, count, kind, redop, root, time, algbw, busbw, wrong, *again, law in rows:
            self.assertEqual([int(count) * 4, kind, redop, root, wrong], [int(size), "float", "sum", "-1", "N/A"])
            self.assertEqual([time, algbw, busbw, wrong], again)
            self.assertAlmostEqual(float(algbw), int(size) / float(time) / 1e3, delta=0.01)
            self.assertAlmostEqual(float(busbw), float(algbw) * 2 * 3 / 4, delta=0.02)
        self.assertAlmostEqual(float(time) / float(law), 1, delta=0.01)     # of the last and largest
        table = json.loads(self.sim("--collective", "all-gather", "--algorithm", "direct", "--sizes", "1M", "--json", self.scenario()).stdout)
        self.assertEqual([(row["kind"], row["algorithm"], row["ranks"], row["bytes"]) for row in table], [("all-gather", "direct", 4, 1 << 20)])

    def test_collective__left_to_nccl_says_what_it_took(self):
        scenario = self.root / "examples/dgx-16.yaml"
        table = self.sim("--collective", "allreduce", "--algorithm", "nccl", "--sizes", "4K", scenario).stdout
        self.assertTrue(table.splitlines()[-1].endswith("  tree LL, 1 channel"), table)
        row = json.loads(self.sim("--collective", "allreduce", "--algorithm", "nccl", "--sizes", "64K", "--json", scenario).stdout)[0]
        self.assertEqual((row["algorithm"], row["protocol"], row["channels"]), ("double-tree", "LL", 16))
        plan = self.sim("--dry-run", "--set", "workload.algorithm=nccl", scenario).stdout
        self.assertIn("NCCL takes NVLS tree Simple, 16 channels for allreduce of 268.4 MB: its model says 1655.6 us", plan)

    def test_collective__left_to_nccl_in_groups_is_chosen_by_what_a_group_has(self):
        for group, choice in (("tp", "NVLS Simple, 16 channels"), ("dp", "ring Simple, 4 channels"), ("tp-dp", "NVLS tree Simple, 16 channels")):
            plan = self.sim("--dry-run", "--set", "workload.algorithm=nccl", "--set", "ranks.dimensions=tp=8,dp=16",
                            "--set", f"workload.group={group}", self.root / "examples/dgx-16.yaml").stdout
            self.assertIn(f"NCCL takes {choice} for allreduce", plan)

    def test_collective__in_a_domain_of_astra_sim_tends_to_its_bandwidth(self):
        (self.place / "HGX-H100-validated.yml").write_text(
            "topology: [ Switch ]\nnpus_count: [ 8 ]\nbandwidth: [ 400.0 ]  # GB/s\nlatency: [ 936.25 ]  # ns\n")
        scenario = self.scenario("network: {file: HGX-H100-validated.yml}\n")
        rows = json.loads(self.sim("--collective", "allreduce", "--sizes", "1M..1G", "--json", scenario).stdout)
        self.assertEqual({(row["algorithm"], row["ranks"]) for row in rows}, {("ring", 8)})
        self.assertAlmostEqual(rows[-1]["busbw_gb_s"], 400, delta=4)

    def test_collective__that_cannot_be_is_refused(self):
        for arguments, part in ((["--collective", "barrier"], "takes allreduce, all-gather, reduce-scatter, alltoall, broadcast or reduce"),
                                (["--collective", "allreduce", "--sizes", "8..4"], "SIZE..SIZE"),
                                (["--collective", "allreduce", "--sizes", "0"], "SIZE..SIZE"),
                                (["--collective", "allreduce", "--sizes", "1T"], "SIZE..SIZE"),
                                (["--collective", "allreduce", "--algorithm", "tree"], "there is ring, recursive-doubling"),
                                (["--collective", "alltoall", "--algorithm", "nccl"], "NCCL has no choice of algorithms for alltoall: leave out algorithm"),
                                (["--collective", "allreduce", "--pcap", "x"], "takes no --compare, --pcap"),
                                (["--sizes", "8"], "are of --collective")):
            self.assertIn(part, self.sim(*arguments, self.scenario(), status=2).stderr, arguments)

    def test_loggops__says_when_each_rank_of_a_job_ends(self):
        job = self.place / "job.goal"
        job.write_text("num_ranks 2\nrank 0 {\na: calc 100\nb: send 1b to 1\nb requires a\n}\nrank 1 {\nrecv 1b from 0\n}\n")
        told = self.sim("--loggops", "L=2500,o=1500,g=1000,G=6,O=0,S=65535", "--job", job)
        self.assertEqual([line.split() for line in told.stdout.splitlines()],
                         [["GOAL:", "2", "ranks,", "3", "operations"], ["host", "0", "1600", "ns"], ["host", "1", "5600", "ns"], ["max", "5600", "ns"]])
        self.assertEqual(told.stderr, "")
        self.assertEqual(json.loads(self.sim("--loggops", "L=0.5,o=0.25", "--job", job, "--json").stdout),
                         {"ranks": 2, "operations": 3, "jct_ps": 101000, "ends_ps": [100250, 101000]})
        job.write_text("num_ranks 20\n" + "".join(f"rank {i} {{\ncalc {40 - i}\n}}\n" for i in range(20)))
        self.assertEqual([line.split()[:2] for line in self.sim("--loggops", "L=1", "--job", job).stdout.splitlines()],
                         [["GOAL:", "20"], ["min", "21"], ["hosts", "19"], ["max", "40"]])

    def test_loggops__says_what_never_ends(self):
        job = self.place / "job.goal"
        job.write_text("num_ranks 2\nrank 0 {\nrecv 1b from -1\n}\nrank 1 {\ncalc 5\n}\n")
        told = self.sim("--loggops", "L=1", "--job", "job.goal", "--json", status=4)
        self.assertIn("job.goal: line 3 of rank 0 never ends", told.stderr)
        self.assertEqual(json.loads(told.stdout)["jct_ps"], 5000)

    def test_loggops__that_cannot_be_is_refused(self):
        job = self.place / "job.goal"
        job.write_text("num_ranks 2\nrank 0 {\nsend 1b to 2\n}\n")
        for arguments, part in ((["--loggops", "L=1", "--job", job], "job.goal:3: the other rank is a whole number up to 1, not 2"),
                                (["--loggops", "L=1", "--job", self.place / "none"], "No such file"),
                                (["--loggops", "x=1", "--job", job], "--loggops: there is no x: the parameters are L, o, g, G, O and S"),
                                (["--loggops", "L=1"], "--loggops needs --job FILE"),
                                (["--loggops", "L=1", "--job", job, self.scenario()], "takes no scenario"),
                                *((["--loggops", "L=1", "--job", job, *more], "takes --job and --json alone")
                                  for more in (["--csv", "x"], ["--trace", "x"], ["--groups", "x"], ["--explain", "job"], ["--dry-run"],
                                               ["--no-alone"], ["--sizes", "8"], ["--algorithm", "ring"], ["--seed", "1"])),
                                (["--job", job, self.scenario()], "job.goal:3: the other rank is a whole number up to 1, not 2"),
                                (["--trace", "t.json", self.scenario()], "are of --job"),
                                (["--job", job, "--flows", "x", self.scenario()], "takes no --flows")):
            self.assertIn(part, self.sim(*arguments, status=2).stderr, arguments)

    def test_job__tells_its_critical_path(self):
        """Rank 0 computes 5 us and sends to 1, which computes 3 us; rank 2 computes all the while and is no part of it."""
        job = self.place / "job.goal"
        job.write_text("num_ranks 3\nrank 0 {\na: calc 5000\nb: send 4096b to 1\nb requires a\n}\n"
                       "rank 1 {\nc: recv 4096b from 0\nd: calc 3000\nd requires c\n}\nrank 2 {\ncalc 6000\n}\n")
        told = self.sim("--job", job, "--trace", "t.json", "--csv", "t.csv", "--json", self.scenario())
        self.assertIn("3 ranks take the first of the network's 4", told.stderr)
        told = json.loads(told.stdout)
        path = told["job"]["critical_path"]
        self.assertEqual([(step["rank"], step["kind"], step["line"], step["waited_for"]) for step in path],
                         [(0, "compute", 3, "nothing"), (0, "send", 4, "operation"), (1, "receive", 8, "message"), (1, "compute", 9, "operation")])
        self.assertEqual([path[0]["from_ps"], path[0]["until_ps"], path[-1]["until_ps"]], [0, 5000000, told["jct_ps"]])
        for one, other in zip(path, path[1:]):
            self.assertEqual(one["until_ps"], other["from_ps"])
        self.assertAlmostEqual(told["job"]["gpu_idle_share"], 1 - 14e6 / (3 * told["jct_ps"]), places=5)
        events = json.loads((self.place / "t.json").read_text())["traceEvents"]
        spans = [event for event in events if event["ph"] == "X"]
        self.assertEqual(sorted((event["dur"], event["pid"]) for event in spans), [(3, 1), (5, 0), (6, 2)])
        with open(self.place / "t.csv") as file:
            lines = list(csv.DictReader(file))
        self.assertEqual([(line["rank"], line["kind"], line["peer"]) for line in lines],
                         [("0", "compute", ""), ("0", "send", "1"), ("1", "receive", "0"), ("1", "compute", ""), ("2", "compute", "")])
        self.assertIn("rank 1 receives from rank 0 (line 8), until the message of the one above was there",
                      self.sim("--job", job, "--explain", "job", self.scenario()).stdout)
        job.write_text("num_ranks 5\n" + "".join(f"rank {i} {{\ncalc 1\n}}\n" for i in range(5)))
        self.assertIn("has 5 ranks, and the network 4", self.sim("--job", job, self.scenario(), status=2).stderr)

    def test_job__that_waits_for_ever_says_so(self):
        job = self.place / "job.goal"
        job.write_text("num_ranks 2\nrank 0 {\nrecv 1b from -1\n}\nrank 1 {\ncalc 5\n}\n")
        told = self.sim("--job", job, self.scenario(), status=4).stdout
        self.assertIn("1 operation never ended, the first: rank 0 receives from any rank (line 3)", told)
        self.assertIn("ended: no events are left, and operations wait for ever, at ", told)
        self.assertIn("2 operations, not done: the last that ended at ", told)
        self.assertNotIn("flow", told)
        self.assertNotIn(" open\n", told)
        self.assertEqual(json.loads(self.sim("--json", "--job", job, self.scenario(), status=4).stdout)["end"], "idle")

    def test_dry_run__says_what_a_run_would_take(self):
        said = self.sim("--dry-run", self.scenario()).stdout
        self.assertIn("3 flows, 60 kB", said)
        self.assertRegex(said, r"about \S+ packet-hops .* of CPU time, .* of memory\n$")

    def test_hosts__have_gpus(self):
        text = """network: {topology: rail, machines: 2, nics-a-machine: 4, leaves: 1, host-rate: 400G}
hosts: {gpu: H100, gpus: 4}
transport: {ack-every: 64}
workload: [{kind: allreduce, bytes: 64MiB}]
"""
        told = self.json(self.scenario(text))
        self.assertEqual(told["scale_up_bytes"] // 1000000, 14 * (64 << 20) // 8 * 6 // 1000000)     # 6 of 8 hops stay in a host
        self.assertTrue(185 < told["busbw_gb_s"] < 200, told["busbw_gb_s"])                            # four NICs of 49 GB/s
        self.assertIn("H100     8 GPUs   450 GB/s", self.sim("--gpus").stdout)
        self.assertIn("alltoall        pairwise", self.sim("--collectives").stdout)
        self.assertIn("cannot share out 3 NICs evenly", self.sim(self.scenario(text), "--set", "hosts.nics=3", status=2).stderr)

    def test_placement__is_of_ranks_and_not_of_flows(self):
        refused = self.sim(self.scenario(), "--set", "hosts.placement=spread", status=2).stderr
        self.assertIn("ranks that are placed, take jobs alone", refused)

    GROUPS = """network: {topology: rail, machines: 4, nics-a-machine: 4, leaves: 1, host-rate: 400G}
hosts: {gpu: H100, gpus: 4}
transport: {ack-every: 64}
ranks:
  dimensions: tp=4, dp
workload: [{kind: allreduce, bytes: 16MiB, group: dp}]
"""

    def test_groups__run_at_once_where_an_order_places_them(self):
        scenario = self.scenario(self.GROUPS)
        self.assertRegex(self.sim(scenario).stdout, r"allreduce \(ring\) of \S+ MB, 4 groups of 4 ranks: ")
        apart = self.json(scenario)
        self.assertTrue(46 < apart["busbw_gb_s"] < 49.1, apart["busbw_gb_s"])        # each GPU's own NIC, and none shared
        self.assertNotIn("scale_up_bytes", apart)
        beside = self.json(scenario, "--set", "hosts.placement=dp-tp")               # a group in each host
        self.assertTrue(400 < beside["busbw_gb_s"] < 450, beside["busbw_gb_s"])
        self.assertEqual(beside["result_hash"],
                         self.json(scenario, "--set", "hosts.placement=0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14")["result_hash"])
        self.assertEqual(beside["result_hash"],
                         self.json(scenario, "--set", "hosts.placement=[0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14]")["result_hash"])
        self.assertIn(beside["result_hash"], self.sim("--json", "--compare", scenario, "hosts.placement=packed,[0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14]").stdout)
        self.assertIn("hosts.placement: this is not YAML", self.sim(scenario, "--set", "hosts.placement=[0, 4", status=2).stderr)
        for threads in 2, 4:
            self.assertEqual(self.json(scenario, "--threads", threads)["result_hash"], apart["result_hash"])

    def test_what_contradicts_the_network__says_where_in_the_file(self):
        for old, new, line in [("tp=4, dp", "tp=3, dp", "5:15: ranks.dimensions: 16 ranks leave no whole number for dp"),
                               ("gpus: 4}", "gpus: 4, placement: dp-pp}", "2:40: hosts.placement: 'pp' is no dimension"),
                               ("gpus: 4}", "gpus: 4, placement: [3, 16]}", "2:40: hosts.placement: there is no GPU 16"),
                               ("group: dp", "group: ep", "6:51: workload.0: group: 'ep' is no dimension"),
                               ("group: dp", "group: dp, first: 3", "6:51: workload.0: group: its groups have their own ranks"),
                               ("group: dp", "first: 14, endpoints: 4", "6:13: workload.0: a collective of 4 ranks from rank 14 on"),
                               ("kind: allreduce, bytes: 16MiB, group: dp", "kind: step, model: none", "6:32: workload.0.model: there is no none")]:
            scenario = self.scenario(self.GROUPS.replace(old, new))
            self.assertIn(f"s.yaml:{line}", self.sim(scenario, status=2).stderr)

    def test_jobs__are_told_beside_their_time_alone(self):
        told = self.json(self.root / "examples/two-jobs.yaml", "--set", "workload.0.bytes=1MiB", "--set", "workload.1.bytes=1MiB")
        self.assertEqual([(job["kind"], job["first"], job["ranks"]) for job in told["jobs"]], [("allreduce", 0, 32), ("alltoall", 32, 32)])
        for job in told["jobs"]:
            self.assertGreaterEqual(job["jct_ps"], 0.9 * job["alone_ps"])      # hashes differ, too
        self.assertNotIn("alone", self.sim("--no-alone", self.root / "examples/two-jobs.yaml").stdout.replace("--no-alone", ""))

    def test_collective_workload__is_over_when_the_last_byte_is_there(self):
        text = TINY.replace("{kind: incast, target: 3, senders: 3, bytes: 20kB}", "{kind: allreduce, bytes: 1MB}")
        told = json.loads(self.sim("--json", self.scenario(text), "--csv", "m.csv").stdout)
        with open(self.place / "m.csv") as file:
            messages = list(csv.DictReader(file))
        self.assertEqual(len(messages), told["operations"])
        self.assertEqual(told["flows"], [])
        self.assertLess(told["jct_ps"], max(int(message["start_ps"]) + int(message["fct_ps"]) for message in messages))
        self.assertAlmostEqual(told["busbw_gb_s"], 1e6 / told["jct_ps"] * 1e3 * 2 * 3 / 4, delta=0.01)

    def test_compare__has_a_line_a_run(self):
        scenario = self.scenario()
        said = self.sim("--compare", scenario, "workload.bytes=1kB,2kB", "transport.cc=none,window").stdout
        self.assertEqual(re.findall(r"^bytes=\S+ cc=\S+", said, re.M),
                         ["bytes=1kB cc=none", "bytes=1kB cc=window", "bytes=2kB cc=none", "bytes=2kB cc=window"])
        runs = self.json("--compare", "workload.bytes=1kB,2kB", scenario)
        self.assertEqual([run["result"]["payload_bytes"] for run in runs], [3000, 6000])
        other = self.scenario(TINY.replace("20kB", "5kB"), "other.yaml")
        runs = self.json("--compare", scenario, other)
        self.assertEqual([(run["run"], run["result"]["payload_bytes"]) for run in runs], [("s.yaml", 60000), ("other.yaml", 15000)])

    def test_pcap__opens_in_wireshark(self):
        if not shutil.which("tshark"):
            self.skipTest("no tshark")
        self.sim(self.scenario(), "--pcap", "c.pcapng", "--capture", "endpoint 3 down", "--capture", "endpoint 3 up")
        seen = subprocess.run(["tshark", "-r", self.place / "c.pcapng", "-T", "fields", "-E", "separator=;", "-e",
                               "frame.interface_name", "-e", "frame.time_epoch", "-e", "ip.src", "-e", "ip.dst", "-e",
                               "infiniband.bth.opcode", "-e", "_ws.malformed"],
                              check=True, text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
        rows = [line.split(";") for line in seen.splitlines()]
        data = [row for row in rows if row[0] == "endpoint 3 down"]
        self.assertEqual({row[0] for row in rows}, {"endpoint 3 down", "endpoint 3 up"})
        self.assertEqual(len(data), 15)    # three times 20 kB in packets of 4096 bytes
        self.assertEqual({row[3] for row in data}, {"10.0.0.4"})
        self.assertEqual({row[2] for row in data}, {"10.0.0.1", "10.0.0.2", "10.0.0.3"})
        times = [float(row[1]) for row in rows]
        self.assertEqual(times, sorted(times))
        self.assertLess(times[-1], 1e-3)
        self.assertTrue(all(row[4] and not row[5] for row in rows))    # each has a BTH, none is malformed

    def test_pcap__wants_links(self):
        self.assertIn("needs links", self.sim(self.scenario(), "--pcap", "x", status=2).stderr)
        self.assertIn("only 4 endpoints", self.sim(self.scenario(), "--pcap", "x", "--capture", "endpoint 4", status=2).stderr)

    def test_keys__are_listed(self):
        said = self.sim("--keys").stdout
        self.assertIn("network.topology\n", said)
        self.assertIn("[4096]", said)
        self.assertNotIn("(null)", said)


if __name__ == "__main__":
    Sim.build, Sim.root = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
