#!/usr/bin/env python3
"""sim_jobs_test BUILD ROOT: what `verbena sim` says of jobs, above all of those that are cut short, refused or not run."""

import csv
import json
import os
import pathlib
import resource
import signal
import subprocess
import sys
import unittest

from sim_case import SimCase

TWO_JOBS = """
network: {topology: switch, endpoints: 8, host-rate: 100G}
workload:
  - {kind: allreduce, first: 0, endpoints: 4, bytes: 1MB}
  - {kind: alltoall, first: 4, endpoints: 4, bytes: 1MB}
"""


class Jobs(SimCase):
    def popen(self, *arguments):
        started = subprocess.Popen([self.build / "src/cli/verbena", "sim", *map(str, arguments)], text=True, cwd=self.place,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(started.kill)
        return started

    def test_jobs_alone__that_are_interrupted_leave_a_result_that_says_so(self):
        """Both jobs together last long enough for a line of progress, and so does the first alone for two."""
        started = self.popen("--progress", "--json", self.scenario(TWO_JOBS.replace("1MB", "5GB", 1)))
        line = "run"
        while line and not line.startswith("a job alone: "):
            line = started.stderr.readline()
        self.assertRegex(line, "of 24 messages, ")
        started.send_signal(signal.SIGINT)
        told = json.loads(started.communicate(timeout=60)[0])
        self.assertEqual((started.returncode, told["end"], told["alone_end"]), (4, "done", "stopped"))
        self.assertEqual([job["alone_ps"] for job in told["jobs"]], [-1, -1])
        self.assertTrue(all(job["jct_ps"] > 0 for job in told["jobs"]))
        self.assertEqual(self.json(self.scenario(TWO_JOBS))["alone_end"], "done")

    def test_collective__says_of_the_row_that_a_limit_cuts(self):
        """Also of the one of a byte, by which the closed form is known."""
        scenario = self.scenario()
        done = self.sim("--collective", "allreduce", "--sizes", "64K..1M", "--set", "run.limit=50us", scenario, status=4)
        sizes = [int(line.split()[0]) for line in done.stdout.splitlines() if not line.startswith("#")]
        self.assertEqual(sizes, [65536, 131072, 262144])
        self.assertEqual(done.stderr, "verbena sim: 524288 bytes: the limit of virtual time was reached, at 50 us (run.limit): no larger "
                                      "one is run\n")
        done = self.sim("--collective", "allreduce", "--json", "--set", "run.limit=1us", scenario, status=4)
        self.assertIn("sim: 1 byte: the limit of virtual time was reached, at 1 us (run.limit)", done.stderr)
        self.assertEqual(done.stdout, "")

    def test_collective__that_is_interrupted_ends_with_the_row_that_runs(self):
        """Also among rows that are so short that they end by themselves; the larger ones would take hours."""
        started = self.popen("--collective", "allreduce", "--sizes", "256K..1024G", self.scenario())
        for _ in range(6):
            line = started.stdout.readline()
        self.assertIn("262144", line)
        started.send_signal(signal.SIGINT)
        _, said = started.communicate(timeout=60)
        self.assertEqual(started.returncode, 4)
        self.assertRegex(said, r"^verbena sim: \d+ bytes: interrupted: neither it nor a larger one is run\n$")

    def test_collective__goes_on_after_drops_in_a_lossless_class(self):
        lossy = self.scenario("network: {topology: leaf-spine, endpoints: 16, leaves: 4, spines: 1, host-rate: 100G, fabric-rate: 200G,\n"
                              "  switch: {flow-control: pfc, buffer: 2MB, headroom: 20kB, classes: {all: {limit: 20kB}}}}\n")
        done = self.sim("--collective", "reduce-scatter", "--algorithm", "direct", "--sizes", "512K..1M", lossy, status=3)
        self.assertRegex(done.stderr, r"verbena sim: 1048576 bytes: \d+ drops in a lossless class\n")
        self.assertIn("warning: network.switch.headroom", done.stderr)
        self.assertEqual(done.stdout.splitlines()[-1].split()[0], "1048576")

    def test_dry_run__of_a_table_runs_nothing(self):
        """Each run would take longer than a test may."""
        said = self.sim("--dry-run", "--collective", "allreduce", "--sizes", "256G..1024G", "--csv", "x", self.scenario()).stdout.splitlines()
        self.assertEqual(said[0], "# tiny, allreduce (ring): 4 ranks; one run for each size, and the first for the closed form")
        self.assertEqual([line.split(": about ")[0].strip() for line in said[1:]],
                         ["1 byte", f"{1 << 38} bytes", f"{1 << 39} bytes", f"{1 << 40} bytes", "in all"])
        self.assertIn("for 11.54 TB of payload", said[-1])    # 7/4 of the largest, by 4 ranks that send 6/4 of it each
        self.assertFalse((self.place / "x").exists())
        said = self.sim("--dry-run", "--compare", self.scenario(), "workload.bytes=1TB,2TB").stdout
        self.assertRegex(said, "^bytes=1TB +about .* for 3 TB of payload: .*\nbytes=2TB +about .* for 6 TB of payload: .*\n$")
        self.assertIn("prints text", self.sim("--dry-run", "--json", self.scenario(), status=2).stderr)

    def test_collective__has_the_columns_of_nccl_tests(self):
        """Elements of a rank's share where each rank has one; the operation where there is one; the root where there is one."""
        for kind, columns in (("allreduce", ["262144", "float", "sum", "-1"]), ("all-gather", ["65536", "float", "none", "-1"]),
                              ("reduce-scatter", ["65536", "float", "sum", "-1"]), ("alltoall", ["65536", "float", "none", "-1"]),
                              ("broadcast", ["262144", "float", "none", "0"]), ("reduce", ["262144", "float", "sum", "0"])):
            said = self.sim("--collective", kind, "--sizes", "1M", self.scenario()).stdout
            self.assertEqual(said.splitlines()[-1].split()[:5], ["1048576"] + columns, kind)

    def test_collective__writes_its_rows_to_a_file(self):
        scenario = self.scenario()
        table = ["--collective", "all-gather", "--sizes", "64K..256K"]
        rows = json.loads(self.sim(*table, "--json", "--csv", "rows.csv", scenario).stdout)
        with open(self.place / "rows.csv") as file:
            lines = list(csv.DictReader(file))
        for row in rows:
            row["error"] = row["error"]["step"]
            del row["mode"]
        self.assertEqual([{name: str(row[name]) for name in row} for row in rows], lines)
        self.assertEqual(len(rows), 3)
        self.assertIn("absent/x: No such file", self.sim(*table, "--csv", "absent/x", scenario, status=1).stderr)
        self.assertIn("/dev/full: No space left", self.sim(*table, "--csv", "/dev/full", scenario, status=1).stderr)

    def test_job__that_is_no_file_with_an_end_is_refused_at_once(self):
        """No name of these may take long, or memory: it has a GiB."""
        scenario = self.scenario()
        bound = None if self.is_sanitized() else lambda: resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
        os.mkfifo(self.place / "pipe")
        os.mkfifo(self.place / "trace.0.et")
        (self.place / "empty").write_text("")
        with open(self.place / "sparse", "wb") as sparse:
            sparse.truncate(1 << 40)
        for name, why in (("/dev/zero", "/dev/zero: it is a pipe or a device: a file with an end is wanted"), ("pipe", "pipe: it is a pipe"),
                          ("trace", "trace.0.et: it is a pipe"), ("trace.0.et", "trace.0.et: it is a pipe"), ("empty", "empty: it is empty"),
                          (".", ".: Is a directory"), ("sparse", "sparse: File too large"), ("absent", "absent: No such file")):
            for arguments in ([scenario], ["--loggops", "L=1"]):
                done = subprocess.run([self.build / "src/cli/verbena", "sim", "--job", name, *arguments], cwd=self.place, text=True,
                                      timeout=20, preexec_fn=bound, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn(why, done.stderr)

    def test_job__is_foreseen_to_send_by_the_network_what_leaves_its_host(self):
        """An allreduce of eight ranks: in a host of eight GPUs no packet, in hosts of four or two one hop of four or two leaves it."""
        hosts = self.scenario("network: {topology: switch, endpoints: 8, host-rate: 100G}\nhosts: {gpus: 8, nics: 1, scale-up: 1T}\n")
        job = ["--job", self.root / "tests/unit/net/traces/all_reduce", hosts]
        alone = self.json(*job)
        self.assertEqual((alone["packet_hops"], alone["estimate"]["packet_hops"]), (0, 0))
        for gpus in (4, 2):
            told = self.json(*job, "--set", f"hosts.gpus={gpus}")
            self.assertAlmostEqual(told["estimate"]["packet_hops"] / told["packet_hops"], 1, delta=0.02)
            self.assertAlmostEqual(told["estimate"]["payload_bytes"] / told["payload_bytes"], 1, delta=1e-5)

    def test_collective__has_qps_as_nccl_is_told(self):
        """Two leaves, and four spines whose links have a quarter of a host's rate: one QP has one of the paths, several have more."""
        scenario = self.scenario("network: {topology: leaf-spine, endpoints: 8, leaves: 2, spines: 4, host-rate: 100G, fabric-rate: 25G, "
                                 "switch: {profile: ideal}}\ntransport: {cc: none, ack-every: 16}\nworkload: [{kind: allreduce, bytes: 16MiB}]\n")
        share = 16 << 17

        def run(*settings):
            words = [word for setting in settings for word in ("--set", f"workload.nccl.{setting}")]
            told = self.json(scenario, *words, "--csv", "m.csv")
            with open(self.place / "m.csv") as file:
                sizes = [int(message["bytes"]) for message in csv.DictReader(file)]
            self.assertEqual(len(sizes), told["operations"])
            self.assertAlmostEqual(told["estimate"]["packet_hops"] / told["packet_hops"], 1, delta=0.02)
            self.assertEqual(self.json(scenario, *words, "--threads", 2)["result_hash"], told["result_hash"])
            return told["jct_ps"], {size: sizes.count(size) for size in sizes}

        one, sizes = run()
        self.assertEqual(sizes, {share: 8 * 14})
        self.assertAlmostEqual(one / (14 * share * 8 / 25e9 * (4096 + 82) / 4096 * 1e12), 1, delta=0.01)
        in_turn, sizes = run("qps=4")                 # requests that wait for each other's path no more
        self.assertEqual(sizes, {share: 8 * 14})
        self.assertLess(in_turn, 0.75 * one)
        cut, sizes = run("qps=16", "split-data=yes")
        self.assertEqual(sizes, {share // 16: 8 * 14 * 16})
        self.assertLess(cut, 0.5 * one)
        self.assertGreater(cut, one / 4)
        self.assertEqual(run("split-data=yes")[0], one)

    def test_collective__has_pxn_as_nccl_is_told(self):
        """Rails that nothing joins: only what keeps to them arrives. Where spines join them each job leaves as it says."""
        text = ("network: {topology: rail, machines: 4, nics-a-machine: 4, leaves: 1, spines: 2, host-rate: 400G}\n"
                "hosts: {gpu: H100, gpus: 4}\nworkload:\n  - {kind: alltoall, bytes: 1MiB}\n  - {kind: alltoall, bytes: 1MiB}\n")
        joined = self.scenario(text)
        hashes = {}
        for keeps in ("yes", "no"):
            for own in ("as-hosts", "yes", "no"):
                words = ["--no-alone", "--set", f"hosts.keeps-rails={keeps}"]
                for job in (0, 1):
                    words += ["--set", f"workload.{job}.nccl.pxn={own}"]
                hashes[keeps, own] = self.json(joined, *words)["result_hash"]
        self.assertEqual(len(set(hashes.values())), 2)
        self.assertEqual({hashes["yes", "as-hosts"]}, {hashes["yes", "yes"], hashes["no", "yes"]})
        self.assertEqual({hashes["no", "as-hosts"]}, {hashes["no", "no"], hashes["yes", "no"]})
        one_each = ("--no-alone", "--set", "workload.0.nccl.pxn=yes", "--set", "workload.1.nccl.pxn=no")
        mixed = [self.json(joined, *one_each, "--threads", threads)["result_hash"] for threads in (1, 2)]
        self.assertEqual(mixed[0], mixed[1])
        self.assertNotIn(mixed[0], hashes.values())
        self.assertEqual(self.json(joined, *one_each, "--set", "hosts.keeps-rails=no")["result_hash"], mixed[0])
        apart = self.scenario(text.replace(", spines: 2", ""))
        self.assertEqual(self.json(apart, "--no-alone", "--set", "hosts.keeps-rails=no", "--set", "workload.0.nccl.pxn=yes",
                                   "--set", "workload.1.nccl.pxn=yes")["end"], "done")
        self.assertIn("job 1: no path leads between endpoints", self.sim(apart, "--no-alone", "--set", "workload.1.nccl.pxn=no",
                                                                         status=2).stderr)

    def test_collective__uses_no_more_channels_than_nccl_is_told(self):
        for algorithm, says in (("ring", "; 65024 messages, 68.18 GB"), ("nccl", "NCCL takes NVLS tree Simple, 2 channels")):
            self.assertIn(says, self.sim("--dry-run", "--set", f"workload.algorithm={algorithm}", "--set", "workload.nccl.channels=2",
                                         self.root / "examples/dgx-16.yaml").stdout)

    def test_collective__has_the_buffers_that_nccl_is_told(self):
        """A buffer goes by a connection in each round trip, so a long way takes a quarter of the time with four times the buffer."""
        scenario = self.scenario("network: {topology: switch, endpoints: 2, host-rate: 400G, host-delay: 100us, switch: {profile: ideal}}\n"
                                 "transport: {cc: none, ack-every: 16}\nworkload: [{kind: broadcast, bytes: 64MiB}]\n")
        for buffer in (1, 4):
            told = self.json(scenario, "--set", f"workload.nccl.buffsize={buffer}MiB", "--csv", "m.csv")
            self.assertAlmostEqual(told["jct_ps"] / (64 / buffer * 400e6 + buffer * 2**20 * 8 / 400e9 * 1e12), 1, delta=0.08)
            self.assertEqual(told["operations"], 2 * 64 * 8 // buffer - 8)     # pieces, and what opens all slots but the first eight
            with open(self.place / "m.csv") as file:
                self.assertEqual(len(list(csv.DictReader(file))), told["operations"])

    def test_table__has_the_settings_of_nccl_that_its_scenario_has(self):
        """As the workload of the same size has them; of several workloads they are the same, or the table is refused."""
        text = ("network: {topology: leaf-spine, endpoints: 8, leaves: 2, spines: 4, host-rate: 100G, fabric-rate: 25G, "
                "switch: {profile: ideal}}\ntransport: {cc: none, ack-every: 16}\nworkload:\n  - {kind: allreduce, bytes: 4MiB%s}\n")
        times = set()
        for nccl in ("", ", nccl: {qps: 4}", ", nccl: {qps: 4, split-data: yes}"):
            scenario = self.scenario(text % nccl)
            row = self.json("--collective", "allreduce", "--sizes", "4M", scenario)[0]
            self.assertEqual(row["time_ps"], self.json(scenario)["jct_ps"])
            times.add(row["time_ps"])
        self.assertEqual(len(times), 3)
        table = ["--collective", "allreduce", "--sizes", "64M", self.root / "examples/dgx-16.yaml"]
        few, all_of_them = self.json(*table, "--set", "workload.nccl.channels=2")[0], self.json(*table)[0]
        self.assertGreater(few["time_ps"], 2 * all_of_them["time_ps"])
        self.assertGreater(few["law_ps"], 2 * all_of_them["law_ps"])
        rails = self.scenario("network: {topology: rail, machines: 4, nics-a-machine: 4, leaves: 1, spines: 2, host-rate: 400G}\n"
                              "hosts: {gpu: H100, gpus: 4}\nworkload: [{kind: alltoall, bytes: 1MiB}]\n")
        for pxn in ("yes", "no"):
            row = self.json("--collective", "alltoall", "--sizes", "1M", "--set", f"workload.nccl.pxn={pxn}", rails)[0]
            self.assertEqual(row["time_ps"], self.json(rails, "--set", f"workload.nccl.pxn={pxn}")["jct_ps"])
            times.add(row["time_ps"])
        self.assertEqual(len(times), 5)
        several = self.scenario(text % ", nccl: {qps: 4}" + "  - {kind: alltoall, bytes: 1MB}\n")
        done = self.sim("--collective", "allreduce", several, status=2)
        self.assertIn("--collective has the nccl keys of the scenario, and workload.1 has others than workload.0", done.stderr)

    def test_collective__of_more_parts_than_connections_have_numbers_is_refused(self):
        many = self.scenario("network: {topology: leaf-spine, endpoints: 2048, leaves: 16, spines: 2, host-rate: 100G, nic: {ports: 2}}\n"
                             "hosts: {gpus: 4, nics: 1024, scale-up: 1T}\nworkload: [{kind: allreduce, bytes: 16MiB}]\n")
        self.assertIn("s.yaml:3:13: workload.0: it is 2048 parts, one for each port of a host's NICs, with 1 QPs each: write fewer NICs",
                      self.sim(many, status=2).stderr)
        told = self.json(many, "--set", "workload.nccl.channels=64", "--set", "workload.nccl.qps=128", "--set", "workload.bytes=64kB")
        self.assertEqual((told["end"], told["flows_failed"]), ("done", 0))
        self.assertEqual(self.json(many, "--job", self.root / "tests/unit/net/traces/all_reduce")["end"], "done")   # in one part

    def test_estimate__of_the_cpu_time_of_messages_comes_true(self):
        """Of small ones, within hosts and between them, which keep their connections; on a machine that others use within a factor of 4."""
        if self.is_sanitized():
            self.skipTest("a sanitizer's time is another")
        network = "network: {topology: switch, endpoints: 16, host-rate: 400G}\ntransport: {ack-every: 16}\n"
        for scenario in (network + "hosts: {gpus: 64, nics: 1, scale-up: 3600G}\nworkload: [{kind: allreduce, bytes: 1MB, endpoints: 512}]\n",
                         network.replace("16,", "256,", 1) + "workload: [{kind: allreduce, bytes: 64}]\n",
                         network.replace("16,", "256,", 1) + "workload: [{kind: alltoall, bytes: 64kB}]\n"):
            told = self.json(self.scenario(scenario))
            self.assertTrue(1 / 4 < told["estimate"]["cpu_s"] / (told["cpu_s"] + told["setup_cpu_s"]) < 4,
                            (scenario, told["estimate"], told["cpu_s"]))


if __name__ == "__main__":
    Jobs.build, Jobs.root = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
