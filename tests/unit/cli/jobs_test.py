#!/usr/bin/env python3
"""jobs_test BUILD: what `verbena sim --job` tells of traces with collectives: what the job waited for, what GPUs did, and
the trace for Perfetto. The traces are Chakra's, written here."""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

COMPUTE, COLLECTIVE = 4, 7      # NodeType
INT64, BOOL = 9, 27             # AttributeProto's fields
ALL_REDUCE = 0


def varint(value):
    written = bytearray()
    while value > 0x7F:
        written.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(written + bytes([value]))


def field(number, value):
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def node(number, kind, after=(), us=0, **attributes):
    written = field(1, number) + field(2, b"n") + field(3, kind)
    if after:
        written += field(5, b"".join(varint(other) for other in after))
    if us:
        written += field(7, us)
    for name, value in attributes.items():
        written += field(10, field(1, name.encode()) + field(BOOL if isinstance(value, bool) else INT64, int(value)))
    return varint(len(written)) + written


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
            (self.place / f"job.{rank}.et").write_bytes(b"\x07\x0A\x050.0.4" + b"".join(nodes))
        return self.place / "job"

    def sim(self, *arguments, status=0):
        done = subprocess.run([self.build / "src/cli/verbena", "sim", *map(str, arguments)], cwd=self.place, text=True,
                              timeout=120, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done.stdout

    def job(self, *arguments, status=0):
        return json.loads(self.sim("--json", *arguments, status=status))["job"]

    # ---- What the job waited for -------------------------------------------------------------------------------------

    def test_rank__that_computes_longer_before_an_allreduce_is_on_the_path(self):
        """All but rank 2 compute 10 us, rank 2 computes 90."""
        ranks = [[node(1, COMPUTE, us=90 if rank == 2 else 10), allreduce(2, [1], 4000)] for rank in range(4)]
        path = self.job("--job", self.traces(*ranks), self.network([100] * 4))["critical_path"]
        self.assertEqual([(step["rank"], step["kind"], step["waited_for"]) for step in path[:2]],
                         [(2, "compute", "nothing"), (2, "collective", "operation")])
        self.assertEqual(path[0]["until_ps"], 90_000_000)
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
        job = self.job("--job", self.traces(*ranks), "--set", "run.limit=50us", self.network([100] * 2), status=4)
        self.assertAlmostEqual(job["gpu_idle_share"], 1 - (50 + 20) / (2 * 50), places=5)

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
