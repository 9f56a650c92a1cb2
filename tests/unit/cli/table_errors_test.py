"""Tables in a fast mode: each row has its error against packets, as a run alone has."""

import csv
import io
import json
import pathlib
import signal
import subprocess
import sys
import unittest

from sim_case import SimCase, StepCase, small_step

COLLECTIVE = """
network: {topology: switch, endpoints: 8, host-rate: 100G, host-delay: 1us, switch: {profile: ideal}}
transport: {cc: none, mtu: 4096}
workload:
  - {kind: allreduce, bytes: 4MB}
"""


class TableErrors(StepCase):
    def lines(self, *arguments, **more):
        return self.sim(*arguments, **{"is_checked": True, **more}).stdout.splitlines()

    def test_row__of_steps_has_the_error_of_its_run_alone(self):
        step = self.scenario(small_step("tp: 2", "dp: 8"))
        modes = ["flows", "formula", "packets"]
        rows = [row["result"] for row in self.json("--compare", step, "run.mode=" + ",".join(modes), is_checked=True)]
        for mode, row in zip(modes, rows):
            alone = self.step(step, f"run.mode={mode}", is_checked=True)
            self.assertEqual(row["steps"][0]["mode"], mode)
            self.assertEqual(row["steps"][0]["error"], alone["error"])
            self.assertEqual(row["steps"][0].get("check", {}).get("packet_hops"), alone.get("check", {}).get("packet_hops"))
        self.assertEqual(rows[2]["steps"][0]["error"], {"step": 0})
        table = self.lines("--compare", step, "run.mode=flows,packets")
        self.assertRegex(table[0], r"net gains +error +worst phase$")
        error = rows[0]["steps"][0]["error"]
        self.assertIn(f"{100 * error['step']:+.2f}%", table[1])
        self.assertTrue(table[1].endswith(f"{error['worst_phase']['name']} {100 * error['worst_phase']['error']:+.2f}%"), table[1])
        self.assertTrue(any(line.startswith("mode=packets") and line.split()[-2:] == ["0", "-"] for line in table), table)
        self.assertRegex(table[-1], r"^error: of a piece of each row that ran by packets, too: 100% of each message's bytes, .* packet-hops in all$")

    def test_rows__without_checks_have_no_column(self):
        step = self.scenario(small_step("dp: 16"))
        self.assertNotIn("error", self.lines("--no-check", "--compare", step, "run.mode=flows,formula")[0])
        self.assertNotIn("error", self.json("--compare", step, "run.mode=flows")[0]["result"]["steps"][0])
        ring = self.scenario(COLLECTIVE)
        self.assertNotIn("error", "\n".join(self.lines("--compare", ring, "workload.bytes=1MB,2MB")))
        self.assertNotIn("error", "\n".join(self.lines("--no-check", "--compare", ring, "run.mode=flows")))

    def test_row__of_messages_has_the_error_of_its_run_alone(self):
        ring = self.scenario(COLLECTIVE)
        rows = [row["result"] for row in self.json("--compare", ring, "run.mode=flows,packets", is_checked=True)]
        self.assertAlmostEqual(rows[0]["error"]["step"], rows[0]["jct_ps"] / rows[1]["jct_ps"] - 1, delta=1e-5)
        self.assertEqual((rows[0]["check"]["packet_hops"], rows[1]["error"]), (rows[1]["packet_hops"], {"step": 0}))
        table = self.lines("--compare", ring, "run.mode=flows,packets")
        self.assertTrue(table[0].endswith(" error"), table[0])
        self.assertTrue(table[1].endswith(f" {100 * rows[0]['error']['step']:+.2f}%"), table[1])
        self.assertTrue(any(line.startswith("mode=packets") and line.endswith(" 0") for line in table), table)

    def test_part__of_the_bytes_is_that_of_every_row(self):
        ring = self.scenario(COLLECTIVE)
        rows = self.json("--compare", ring, "run.mode=flows,packets", "--exact-check", "10%", is_checked=True)
        self.assertEqual(rows[0]["result"]["check"]["bytes_part"], 0.1)
        self.assertIn("10% of each message's bytes", self.lines("--compare", ring, "run.mode=flows", "--exact-check", "10%")[-1])
        self.assertIn("--exact-check is of runs", self.sim("--compare", ring, "--exact-check", "10%", status=2).stderr)

    def test_row__whose_error_is_not_known_says_why(self):
        weights = self.scenario("""
network: {topology: switch, endpoints: 6, host-rate: 100G, switch: {profile: ideal}}
workload:
  - {kind: rl, replicas: 3, trainers: 1, bytes: 20MB}
run: {mode: flows}
""")
        table = self.lines("--compare", weights, "run.seed=1,2", "--exact-check", "10%")
        self.assertTrue(table[1].endswith(" -"), table[1])
        self.assertEqual(table[2], "  error not known: workloads of its kinds are not cut: leave out --exact-check")
        self.assertFalse(any(line.startswith("error:") for line in table), table)

    def test_check__that_is_interrupted_leaves_its_row(self):
        """The row's own run has ended; that of the next does not begin."""
        large = self.root / "examples/llama3-70b-1024.yaml"
        command = [self.build / "src/cli/verbena", "sim", "--compare", large, "variant=rails,hashed", "--progress", "--json"]
        with subprocess.Popen(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as started:
            self.addCleanup(started.kill)
            line = started.stderr.readline()
            while line and not line.startswith("row 1 of 2: the check: "):
                line = started.stderr.readline()
            started.send_signal(signal.SIGINT)
            rows = json.loads(started.communicate(timeout=60)[0])
        self.assertEqual((started.returncode, len(rows)), (4, 1))
        told = rows[0]["result"]["steps"][0]
        self.assertEqual((told["error"], told["unchecked_because"]), (None, "it was interrupted"))
        self.assertGreater(told["step"]["time_ps"], 0)

    def test_collectives__have_an_error_in_each_row(self):
        ring, sizes = self.scenario(COLLECTIVE), ["--collective", "allreduce", "--sizes", "64K..256K"]
        by_packets = self.json(*sizes, ring, is_checked=True)
        flows = ["--set", "run.mode=flows", *sizes, ring]
        rows = self.json(*flows, is_checked=True)
        for row, packets in zip(rows, by_packets, strict=True):
            self.assertEqual((row["mode"], packets["mode"], packets["error"]), ("flows", "packets", {"step": 0}))
            self.assertAlmostEqual(row["error"]["step"], row["time_ps"] / packets["time_ps"] - 1, delta=1e-5)
        table = self.lines(*flows, "--csv", "rows.csv")
        self.assertTrue(table[3].endswith("form     error"), table[3])
        for line, row in zip(table[5:], rows):
            self.assertEqual(line.split()[-1], f"{100 * row['error']['step']:+.2f}%")
        self.assertRegex(table[-1], "^# error: of a piece of each row")
        told = list(csv.DictReader(io.StringIO((self.place / "rows.csv").read_text())))
        self.assertEqual([float(line["error"]) for line in told], [row["error"]["step"] for row in rows])
        self.assertNotIn("error", "\n".join(self.lines("--no-check", *flows, "--csv", "rows.csv")))
        self.assertRegex((self.place / "rows.csv").read_text(), r"law_ps,error\n.*,\n")
        self.lines(*sizes, ring, "--csv", "rows.csv")
        self.assertRegex((self.place / "rows.csv").read_text(), r"law_ps,error\n.*,0\n")


if __name__ == "__main__":
    SimCase.build, SimCase.root = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
