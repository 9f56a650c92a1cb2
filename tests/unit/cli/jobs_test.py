#!/usr/bin/env python3
"""jobs_test BUILD: what `verbena sim --job` tells of traces with collectives: what the job waited for, what GPUs did, and
the trace for Perfetto. The traces are Chakra's, written here."""

import csv
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

from chakra_trace import COLLECTIVE, COMPUTE, HEAD, node

ALL_REDUCE = 0


def allreduce(number, after, size):
    return node(number, COLLECTIVE, after, comm_type=ALL_REDUCE, comm_size=size)


class Jobs(unittest.TestCase):
    build = None

    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.place = pathlib.Path(scratch.name)

    def network(self, rates, ecn=""):
        """Hosts at one switch, each with a rate in Gb/s."""
        lines = "".join(f"{i},{len(rates)},{rate},1000\n" for i, rate in enumerate(rates))
        (self.place / "net.csv").write_text("node_a,node_b,gbps,delay_ns\n" + lines)
        path = self.place / "net.yaml"
        path.write_text("network: {file: net.csv, switch: {flow-control: drops, buffer: 0, class-count: 1" + ecn + "}}\n"
                        "transport: {ack-every: 16}\n")
        return path

    def traces(self, *ranks):
        for rank, nodes in enumerate(ranks):
            (self.place / f"job.{rank}.et").write_bytes(HEAD + b"".join(nodes))
        return self.place / "job"

    def sim(self, *arguments, status=0):
        done = subprocess.run([self.build / "src/cli/verbena", "sim", *map(str, arguments)], cwd=self.place, text=True,
                              timeout=120, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        self.said = done.stderr
        return done.stdout

    def job(self, *arguments, status=0):
        return json.loads(self.sim("--json", *arguments, status=status))["job"]

    def test_collectives__have_the_settings_of_nccl_as_a_workload_has_them(self):
        """Two leaves, and four spines whose links have a quarter of a host's rate: one QP has one of the paths, several have more."""
        size = 4 << 20
        trace = self.traces(*[[allreduce(1, [], size)]] * 8)
        scenario = self.place / "paths.yaml"
        scenario.write_text("network: {topology: leaf-spine, endpoints: 8, leaves: 2, spines: 4, host-rate: 100G, fabric-rate: 25G, "
                            "switch: {profile: ideal}}\ntransport: {cc: none, ack-every: 16}\n"
                            f"workload: [{{kind: allreduce, bytes: {size}}}]\n")
        times = []
        for settings in ([], ["qps=4"], ["qps=16", "split-data=yes"]):
            of_job, of_workload = ([word for setting in settings for word in ("--set", f"{place}.nccl.{setting}")]
                                   for place in ("job", "workload"))
            by = [json.loads(self.sim("--json", *of_job, "--job", trace, "--set", f"run.threads={threads}", scenario)) for threads in (1, 2)]
            self.assertEqual(by[0]["result_hash"], by[1]["result_hash"])
            self.assertAlmostEqual(by[0]["estimate"]["packet_hops"] / by[0]["packet_hops"], 1, delta=0.02)
            like = json.loads(self.sim("--json", *of_workload, scenario))
            self.assertEqual((by[0]["operations"], by[0]["packet_hops"]), (like["operations"], like["packet_hops"]))
            self.assertEqual(by[0]["jct_ps"], like["jct_ps"])
            times.append(like["jct_ps"])
        self.assertLess(times[1], 0.75 * times[0])
        self.assertLess(times[2], 0.5 * times[0])

    def test_settings_of_nccl__that_change_nothing_are_named(self):
        collective, alone, network = allreduce(1, [], 4000), node(1, COMPUTE, us=5), self.network([100] * 4)
        settings = ["channels=2", "qps=2", "split-data=yes", "buffsize=1MB", "pxn=yes"]
        for job, words, says in ((collective, ["qps=2"], []), (collective, ["split-data=yes"], ["split-data: nccl.qps is 1, and a message"]),
                                 (collective, ["channels=2"], ["channels: without it no more NICs"]),
                                 (collective, ["buffsize=1MB"], ["buffsize: only chain, double-tree and nvls"]),
                                 (collective, ["pxn=no"], ["pxn: without hosts.gpus each endpoint is a rank"]),
                                 (alone, settings[:4], [f"{key}: the job has no collectives" for key in ("channels", "qps", "split-data", "buffsize")]),
                                 (None, settings, ["and of steps of training, and there is none"] * 5)):
            with self.subTest(words):
                setting = [word for each in words for word in ("--set", f"job.nccl.{each}")]
                others = ["--job", self.traces(*[[job]] * 4)] if job else ["--set", "workload.kind=incast"]
                self.sim(*setting, *others, network)
                self.assertEqual(self.said.count("no effect"), len(says), self.said)
                for line in says:
                    self.assertIn(line, self.said)

    def test_qps__that_two_ranks_have_no_connections_for_are_refused(self):
        scenario = self.place / "many.yaml"
        scenario.write_text("network: {topology: switch, endpoints: 64, host-rate: 100G}\nhosts: {gpus: 32, nics: 32, scale-up: 1T}\n"
                            "transport: {ack-every: 16}\n")
        trace = self.traces(*[[allreduce(1, [], 1 << 20)]] * 64)
        self.sim("--job", trace, "--set", "job.nccl.qps=128", scenario, status=2)
        self.assertIn("job.nccl.qps: two ranks have 2047 connections at most", self.said)
        self.sim("--job", trace, "--set", "job.nccl.qps=128", "--set", "job.nccl.channels=15", scenario)

    # ---- What the job waited for -------------------------------------------------------------------------------------

    def test_rank__that_computes_longer_before_an_allreduce_is_on_the_path(self):
        """All but rank 2 compute 10 us, rank 2 computes 90."""
        ranks = [[node(1, COMPUTE, us=90 if rank == 2 else 10), allreduce(2, [1], 4000)] for rank in range(4)]
        path = self.job("--job", self.traces(*ranks), self.network([100] * 4))["critical_path"]
        self.assertEqual([(step["rank"], step["kind"], step["waited_for"]) for step in path[:2]],
                         [(2, "compute", "nothing"), (2, "collective", "operation")])
        self.assertEqual(path[0]["until_ps"], 90_000_000)
        self.assertEqual(path[1]["cause"], None)        # what links did is told if asked for
        self.assertIn({"kind": "straggler", "rank": 2, "late_ps": 80_000_000}, [step["cause"] for step in path[2:]])
        self.assertTrue(all(step["waited_for"] == "message" and step["from_ps"] == step["until_ps"] for step in path[2:]), path)

    def test_link__that_is_slow_is_on_the_path(self):
        """Rank 1's link is ten times as slow: of the messages of the chain, one by it takes longest."""
        ranks = [[node(1, COMPUTE, us=10), allreduce(2, [1], 4 << 20)] for rank in range(4)]
        files = ["--job", self.traces(*ranks), self.network([100, 10, 100, 100])]
        step = self.job(*files)["critical_path"][1]
        self.assertEqual([step["kind"], step["messages"]], ["collective", 6])
        self.assertIn((step["longest"]["from"], step["longest"]["to"]), [(0, 1), (1, 2)])
        self.assertGreater(step["longest"]["took_ps"], 800e6)         # a share of 1 MiB at 10 Gb/s
        told = self.sim(*files)
        self.assertRegex(told, r"6 messages, one after the other, the longest \S+ ms from rank (0 to 1|1 to 2)\n")

    def goal(self, *ranks):
        path = self.place / "job.goal"
        path.write_text(f"num_ranks {len(ranks)}\n" + "".join(f"rank {i} {{\n{lines}\n}}\n" for i, lines in enumerate(ranks)))
        return path

    def cause(self, rank, *arguments):
        """Of the transfer on the path that this rank sends."""
        path = self.job("--explain", "job", *arguments)["critical_path"]
        return next(step["cause"] for step in path if step["cause"] and step["cause"].get("from") == rank)

    def test_transfer__that_waits_in_a_queue_says_where_and_behind_whom(self):
        """1 MB from each of two, at once: the queue grows to 1 MB and goes away again, 0.5 MB in the mean: 40 us at 100 Gb/s."""
        job = self.goal("send 1000000b to 1", "recv 1000000b from 0\nrecv 1000000b from 2", "send 1000000b to 1")
        for rank, other in (0, 2), (2, 0):
            path = self.job("--explain", "job", "--job", job, self.network([100] * 3))["critical_path"]
            if path[0]["rank"] == rank:
                its = path[0]["cause"]
                self.assertEqual([its["kind"], its["link"], its["is_only_way"], its["from"], its["to"]], ["queue", "endpoint 1 down", True, rank, 1])
                self.assertTrue(35e6 < its["queueing_ps"] < 45e6, its)
                self.assertTrue(0.95 < its["load"] <= 1, its)
                self.assertEqual(its["beside"]["rank"], other)
                self.assertTrue(900e3 < its["beside"]["bytes"] <= 1e6, its)
                break
        else:
            self.fail(path)
        self.assertRegex(self.sim("--explain", "job", "--job", job, self.network([100] * 3)),
                         r"; packets waited 4\d\S* us before endpoint 1 down, which sent 9\d% of the time, beside \S+ \wB of rank [02]\n")

    def test_transfer__that_shares_its_own_link_says_so(self):
        """Nothing waits in the network: the link of the sender, which sends to two, is what they wait for."""
        job = self.goal("send 1000000b to 1\nsend 1000000b to 2", "recv 1000000b from 0", "recv 1000000b from 0")
        its = self.cause(0, "--job", job, self.network([100] * 3))
        self.assertEqual([its["kind"], its["link"], its["beside"]["rank"]], ["load", "endpoint 0 up", 0])

    def test_transfer__that_is_small_waits_for_the_distance(self):
        its = self.cause(0, "--job", self.goal("send 1b to 1", "recv 1b from 0"), self.network([100] * 2))
        self.assertEqual([its["kind"], its["missing"], its["queueing_ps"], its["paused_ps"]], ["distance", 0, 0, 0])

    def test_transfer__that_loses_packets_says_where(self):
        job = self.goal("send 1000000b to 1", "recv 1000000b from 0")
        its = self.cause(0, "--job", job, "--set", "network.faults.0.link=endpoint 1 down", "--set", "network.faults.0.loss=0.02",
                         "--set", "transport.timeout=1ms", self.network([100] * 2))
        self.assertEqual([its["kind"], its["link"]], ["loss", "endpoint 1 down"])
        self.assertGreater(its["missing"], 0)

    def test_transfer__that_is_paused_says_because_of_which_queue(self):
        """Rank 1 sends to 4, past no queue of its own: but behind rank 0 on the link between the switches, which are stopped
        because 0 and 2 send to 3."""
        (self.place / "two.csv").write_text("node_a,node_b,gbps,delay_ns\n" + "".join(
            f"{a},{b},{200 if a == 5 else 100},1000\n" for a, b in ((0, 5), (1, 5), (2, 6), (3, 6), (4, 6), (5, 6))))
        scenario = self.place / "two.yaml"
        scenario.write_text("network: {file: two.csv, switch: {flow-control: pfc, buffer: 4MB, class-count: 1,\n"
                            "  classes: {all: {limit: 100kB, lossless: yes}}}}\ntransport: {cc: none, ack-every: 16}\n")
        job = self.goal("send 4000000b to 3", "send 1000000b to 4", "send 4000000b to 3", "recv 4000000b from 0\nrecv 4000000b from 2",
                        "a: recv 1000000b from 1\nb: calc 10000000\nb requires a")
        its = self.cause(1, "--job", job, scenario)
        self.assertEqual([its["kind"], its["stopped_by"]], ["pause", "endpoint 3 down"])
        self.assertIn(its["link"], ["endpoint 1 up", "switch 0 port 2"])
        self.assertGreater(its["paused_ps"], its["took_ps"] / 10)
        self.assertIn(", by the queue before endpoint 3 down, ", self.sim("--explain", "job", "--job", job, scenario))

    def test_transfer__of_several_ways_says_so(self):
        job = self.goal(*["send 1000000b to %d\nrecv 1000000b from %d" % ((i + 2) % 4, (i + 2) % 4) for i in range(4)])
        scenario = self.place / "leaves.yaml"
        scenario.write_text("network: {topology: leaf-spine, endpoints: 4, leaves: 2, spines: 2, host-rate: 100G, fabric-rate: 50G,\n"
                            "  switch: {flow-control: drops, buffer: 0, class-count: 1}}\ntransport: {endpoint: ideal, cc: none}\n")
        for routing, is_only in ("ecmp", True), ("spray", False):
            path = self.job("--explain", "job", "--job", job, "--set", f"network.switch.routing={routing}", scenario)["critical_path"]
            self.assertEqual(path[0]["cause"]["is_only_way"], is_only)

    def test_causes__and_the_trace_are_the_same_with_any_number_of_threads(self):
        scenario = self.place / "leaves.yaml"
        scenario.write_text("network: {topology: leaf-spine, endpoints: 16, leaves: 4, spines: 2, host-rate: 100G}\n")
        ranks = [[node(1, COMPUTE, us=1 + rank % 3), allreduce(2, [1], 1 << 20)] for rank in range(16)]
        files = ["--job", self.traces(*ranks), "--explain", "job", "--trace", "t.json", scenario]
        told = []
        for threads in 1, 3:
            job = self.job("--set", f"run.threads={threads}", *files)
            told.append((job, (self.place / "t.json").read_text()))
        self.assertEqual(told[0], told[1])
        self.assertTrue(any(step["cause"] and step["cause"]["kind"] != "straggler" for step in told[0][0]["critical_path"]))

    # ---- What GPUs did -----------------------------------------------------------------------------------------------

    def test_gpus__compute_nothing_while_a_cpu_does(self):
        """Rank 0's GPU computes 10 us, rank 1's 20; rank 1's CPU works 60 us at the same time, and 20 after that."""
        ranks = [[node(1, COMPUTE, us=10)],
                 [node(1, COMPUTE, us=20), node(2, COMPUTE, us=60, is_cpu_op=True), node(3, COMPUTE, [2], us=20, is_cpu_op=True)]]
        share = self.job("--job", self.traces(*ranks), self.network([100] * 2))["gpu_idle_share"]
        self.assertAlmostEqual(share, 1 - (10 + 20) / (2 * 80), places=5)

    def test_gpus__of_a_run_that_is_cut_are_idle_until_then(self):
        """Cut at 50 us, rank 0's GPU has computed all the time, rank 1's 20 us."""
        ranks = [[node(1, COMPUTE, us=100)], [node(1, COMPUTE, us=20)]]
        files = ["--job", self.traces(*ranks), "--set", "run.limit=50us", self.network([100] * 2)]
        job = self.job(*files, status=4)
        self.assertIn("2 operations, cut at 50 us; GPUs idle 30.0%", self.sim(*files, status=4))
        self.assertAlmostEqual(job["gpu_idle_share"], 1 - (50 + 20) / (2 * 50), places=5)

    # ---- Streams -----------------------------------------------------------------------------------------------------

    def begins(self, *arguments):
        """When each node of rank 0 begins, in us."""
        self.sim("--csv", "t.csv", *arguments)
        with open(self.place / "t.csv") as file:
            return {int(line["node"]): int(line["begin_ps"]) / 1e6 for line in csv.DictReader(file) if line["rank"] == "0"}

    def test_groups__have_streams_of_their_own_if_asked(self):
        """Of a computation, two collectives of all ranks, and one of a group of them."""
        (self.place / "groups.json").write_text('{"1": [0, 1, 2, 3]}')
        ranks = [[node(1, COMPUTE, us=50), allreduce(2, [], 4000), allreduce(3, [], 4000),
                  node(4, COLLECTIVE, comm_type=ALL_REDUCE, comm_size=4000, pg_name=1)] for rank in range(4)]
        files = ["--job", self.traces(*ranks), "--groups", "groups.json", self.network([100] * 4)]
        begin = self.begins(*files)
        self.assertEqual([begin[1], begin[2]], [0, 0])
        self.assertTrue(0 < begin[3] < begin[4], begin)
        begin = self.begins("--set", "job.streams=group", *files)
        self.assertEqual([begin[1], begin[2], begin[4]], [0, 0, 0])
        self.assertTrue(0 < begin[3], begin)

    def test_priorities__decide_which_collective_is_next_if_asked(self):
        """Both wait for the computation and then for the first collective, of the highest identifier."""
        def ranks(first, second):
            return [[node(1, COMPUTE, us=1), node(2, COLLECTIVE, [1], comm_type=ALL_REDUCE, comm_size=4000, comm_priority=first),
                     node(3, COLLECTIVE, [1], comm_type=ALL_REDUCE, comm_size=4000, comm_priority=second),
                     node(4, COLLECTIVE, comm_type=ALL_REDUCE, comm_size=400000)] for rank in range(4)]
        network = self.network([100] * 4)
        begin = self.begins("--job", self.traces(*ranks(0, 7)), network)
        self.assertTrue(begin[4] < begin[2] < begin[3], begin)
        begin = self.begins("--job", self.traces(*ranks(0, 7)), "--set", "job.priorities=yes", network)
        self.assertTrue(begin[4] < begin[3] < begin[2], begin)
        begin = self.begins("--job", self.traces(*ranks(7, 0)), "--set", "job.priorities=yes", network)
        self.assertTrue(begin[4] < begin[2] < begin[3], begin)
        self.sim("--job", self.traces(*ranks(0, 200)), "--set", "job.priorities=yes", network, status=2)
        self.assertIn("its comm_priority is no whole number from -128 to 127", self.said)

    # ---- The trace ---------------------------------------------------------------------------------------------------

    def trace(self, *arguments):
        self.sim("--trace", "t.json", *arguments)
        told = json.loads((self.place / "t.json").read_text())
        self.assertEqual(told["displayTimeUnit"], "ns")
        return told["traceEvents"]

    def test_trace__has_a_process_for_each_host_and_a_track_for_each_stream(self):
        (self.place / "gpus.yaml").write_text(
            "network: {topology: switch, endpoints: 2, host-rate: 100G}\nhosts: {gpus: 2, nics: 1, scale-up: 1T}\n")
        ranks = [[node(1, COMPUTE, us=10), node(2, COMPUTE, us=4, is_cpu_op=True), allreduce(3, [1], 40000)] for rank in range(4)]
        events = self.trace("--job", self.traces(*ranks), self.place / "gpus.yaml")
        names = {(event["name"], event["pid"], event.get("tid")): event["args"]["name"] for event in events if event["ph"] == "M"}
        self.assertEqual([name for (what, *_), name in names.items() if what == "process_name"], ["busiest links", "host 0", "host 1"])
        tracks = {(pid, tid): name for (what, pid, tid), name in names.items() if what == "thread_name"}
        self.assertEqual(len(set(tracks.values())), 4 * 4)          # three streams a rank, and messages
        spans = [event for event in events if event["ph"] == "X"]
        self.assertEqual(len(spans), 4 * 3)
        for span in spans:
            rank = int(span["name"].split()[1])
            self.assertEqual(span["pid"], rank // 2)
            self.assertTrue(tracks[span["pid"], span["tid"]].startswith(f"rank {rank} stream "), span)
        for track in tracks:                                        # one at a time
            its = sorted((span["ts"], span["ts"] + span["dur"]) for span in spans if (span["pid"], span["tid"]) == track)
            self.assertTrue(all(one[1] <= other[0] + 1e-6 for one, other in zip(its, its[1:])), its)

    def test_trace__counts_what_the_busiest_links_do(self):
        """An allreduce of 4 MiB by four hosts, of which one has a slow link: that is busy, and the queue is before it."""
        ranks = [[node(1, COMPUTE, us=10), allreduce(2, [1], 4 << 20)] for rank in range(4)]
        files = ["--job", self.traces(*ranks), self.network([100, 10, 100, 100])]
        counts = [event for event in self.trace(*files) if event["ph"] == "C"]
        names = {event["name"] for event in counts}
        self.assertEqual(len(names), 2 * 5)
        self.assertTrue(len(counts) <= len(names) * 257)
        for name in names:
            its = [event for event in counts if event["name"] == name]
            self.assertEqual([event["ts"] for event in its], sorted({event["ts"] for event in its}))
            self.assertEqual(list(its[-1]["args"].values()), [0])
        busy = [event["args"]["percent"] for event in counts if event["name"] == "endpoint 1 down: utilisation"]
        self.assertTrue(90 < max(busy) <= 100, busy)
        whole = json.loads(self.sim("--json", *files))
        most = next(link["most_queued_bytes"] for link in whole["busiest_links"] if link["name"] == "endpoint 1 down")
        queue = [event["args"]["bytes"] for event in counts if event["name"] == "endpoint 1 down: queue"]
        self.assertTrue(0.9 * most < max(queue) <= most, (max(queue), most))


if __name__ == "__main__":
    Jobs.build = pathlib.Path(sys.argv.pop(1)).resolve()
    unittest.main()
