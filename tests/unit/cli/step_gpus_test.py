#!/usr/bin/env python3
"""step_gpus_test BUILD ROOT: what GPUs of a step of training take: times of a user's own, and GPUs that are slow or of several kinds."""

import pathlib
import sys
import unittest

from chakra_trace import COMPUTE, HEAD, node
from sim_case import StepCase, small_step

STEP = small_step("tp: 2", "pp: 2")
ROWS = {"projections": (100, 210), "scores": (20, 50), "ffn": (200, 390), "output": (30, 70)}
MODES = "packets", "flows", "formula"


class Gpus(StepCase):
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
        self.assertIn("warning: workload.*.mfu: compute-times has them all: no effect",
                      self.sim(scenario, *self.settings("workload.compute-times=times.csv", "workload.mfu=50%")).stderr)

    def test_table__is_beside_the_scenario_and_has_what_is_wanted(self):
        scenario = self.scenario(STEP.replace("batch: 16", "batch: 16\n    compute-times: ./times.csv"))
        self.table(shape="2x2048/2")
        said = self.sim(scenario, status=2).stderr
        self.assertRegex(said, r"s.yaml:14:20: workload.0.compute-times: .*times.csv: of shape 1x2048/2 it has "
                         "no time of projections-forward, projections-backward, .*, output-backward: add rows, or say missing-times: mfu")
        self.table({**ROWS, "scores": (20, -50)})
        self.assertRegex(self.sim(scenario, status=2).stderr, r"s.yaml:14:20: workload.0.compute-times: .*times.csv:6:26: -50: a time is")
        (self.place / "times.csv").unlink()
        self.assertRegex(self.sim(scenario, status=2).stderr, r"s.yaml:14:20: workload.0.compute-times: .*times.csv: No such file")

    def trace(self, rows, name="t.0.et"):
        """A Chakra trace: of each row two kernels, of two layers, and one that is nobody's."""
        kernels = [(f"layers.{layer}.{operation}-{way}", time) for operation, times in rows.items()
                   for way, time in zip(("forward", "backward"), times) for layer in range(2)] + [("adam_kernel", 12)]
        (self.place / name).write_bytes(HEAD + b"".join(node(number, COMPUTE, us=time, name=kernel)
                                                        for number, (kernel, time) in enumerate(kernels, 1)))

    def test_trace__gives_the_rows_of_a_table(self):
        self.table()
        self.trace(ROWS)
        scenario = self.scenario(STEP)
        for mode in MODES:
            tables, traces = (self.step(scenario, f"run.mode={mode}", f"workload.compute-times={name}") for name in ("times.csv", "t.0.et"))
            self.assertEqual(traces["step"], tables["step"])
        self.assertEqual(self.step(scenario, "workload.compute-times=t")["step"], self.step(scenario, "workload.compute-times=times.csv")["step"])
        said = self.sim(scenario, *self.settings("workload.compute-times=t.0.et"))
        self.assertIn(", in the kernels' times of t.0.et\n", said.stdout)
        self.assertEqual(said.stderr, "verbena sim: warning: workload.0.compute-times: 1 of the trace's 17 computations, 0.558% of their "
                                      "time, are of no operation of the model, such as adam_kernel\n")

    def test_times__that_are_missing_are_refused_or_go_by_mfu(self):
        scenario = self.scenario(STEP.replace("batch: 16", "batch: 16\n    compute-times: t.0.et"))
        self.trace({name: times for name, times in ROWS.items() if name != "ffn"})
        self.assertRegex(self.sim(scenario, status=2).stderr,
                         r"s.yaml:14:20: workload.0.compute-times: .*t.0.et: its computations name no ffn-forward, ffn-backward: "
                         r"give them such names \(record_function\), or say missing-times: mfu")
        by_mfu = self.sim(scenario, *self.settings("workload.missing-times=mfu"))
        self.assertIn("t.0.et, what it has not by mfu\n", by_mfu.stdout)
        self.assertIn("compute-times: it has no time of ffn-forward, ffn-backward: these go by mfu\n", by_mfu.stderr)
        slow, fast = (self.step(scenario, "workload.missing-times=mfu", f"workload.mfu={mfu}")["step"]["compute_ps"] for mfu in ("30%", "60%"))
        layer = sum(sum(times) for name, times in ROWS.items() if name not in ("output", "ffn")) + ROWS["scores"][0]
        known = 16 / 4 * (4 * layer + sum(ROWS["output"])) / 2 * 1e6
        self.assertAlmostEqual((slow - known) / (fast - known), 2, delta=1e-4)
        self.assertIn("missing-times: without compute-times all goes by mfu: no effect",
                      self.sim(self.scenario(STEP), *self.settings("workload.missing-times=mfu")).stderr)

    def test_trace__that_is_none_is_refused_at_its_key(self):
        scenario = self.scenario(STEP.replace("batch: 16", "batch: 16\n    compute-times: t.0.et"))
        (self.place / "t.0.et").write_bytes(b"{}")
        self.assertRegex(self.sim(scenario, status=2).stderr, r"s.yaml:14:20: workload.0.compute-times: .*t.0.et: byte 0")
        (self.place / "t.0.et").write_bytes(HEAD)
        self.assertRegex(self.sim(scenario, status=2).stderr, r"workload.0.compute-times: .*t.0.et: it has no computation of a GPU.*chakra_trace_link")
        (self.place / "t.0.et").unlink()
        self.assertRegex(self.sim(scenario, status=2).stderr, r"workload.0.compute-times: .*t.0.et: No such file")

    def times(self, scenario, *settings):
        return {mode: self.step(scenario, f"run.mode={mode}", *settings)["step"]["time_ps"] for mode in MODES}

    def test_slow__holds_up_the_step_in_every_mode(self):
        """Ranks 0 to 7 are the first stage, whose replicas are two ranks each."""
        scenario = self.scenario(STEP.replace("layers: 4", "layers: 8").replace("batch: 16", "batch: 32"))
        even = self.times(scenario)
        for slow in "3=2", "0-7=2", "8-15=1.5", "0=2, 9=2":
            with self.subTest(slow):
                slowed = self.times(scenario, f"workload.slow={slow}")
                for mode in "flows", "formula":
                    self.assertAlmostEqual(slowed[mode] / slowed["packets"], 1, delta=0.03)
                for mode in MODES:
                    self.assertGreater(slowed[mode], 1.15 * even[mode])
                self.assertNotIn("label", self.step(scenario, f"workload.slow={slow}"))

    def test_slow__of_several_replicas_is_at_most_so_long(self):
        scenario = self.scenario(STEP.replace("layers: 4", "layers: 8").replace("batch: 16", "batch: 32"))
        spread = "workload.slow=0-1=2, 10-11=2"
        slowed, one = self.times(scenario, spread), self.times(scenario, "workload.slow=0-1=2")
        for mode in "flows", "formula":
            self.assertGreater(slowed[mode], 1.02 * slowed["packets"])
            told = self.step(scenario, f"run.mode={mode}", spread)
            self.assertRegex(told["label"], "^at most: each stage computes as long as its slowest rank")
            self.assertEqual(told["slow"], "0-1=2, 10-11=2")
        self.assertGreaterEqual(slowed["packets"], one["packets"])
        self.assertNotIn("label", self.step(scenario, "run.mode=packets", spread))
        said = self.sim(scenario, *self.settings(spread)).stdout
        self.assertIn("\nat most: each stage computes", said)
        self.assertIn("\nslow    0-1=2, 10-11=2: their computing takes so many times as long\n", said)

    def test_slow__is_the_straggler_by_packets(self):
        scenario = self.scenario(STEP)
        def late(*settings):
            """By rank: how much later it began than others that waited for it, on the critical path."""
            told, sums = self.json(scenario, "--explain", "job", *self.settings("run.mode=packets", *settings)), {}
            for step in told["job"]["critical_path"]:
                if step["cause"] and step["cause"]["kind"] == "straggler":
                    sums[step["cause"]["rank"]] = sums.get(step["cause"]["rank"], 0) + step["cause"]["late_ps"]
            return sums

        slowed, even = late("workload.slow=5=3"), late()
        self.assertEqual(max(slowed, key=slowed.get), 5)
        self.assertGreater(slowed[5], 5 * max(even.values()))

    def test_mix__computes_at_each_speed(self):
        scenario = self.scenario(STEP)
        for mode in MODES:
            with self.subTest(mode):
                by = {text: self.step(scenario, f"run.mode={mode}", f"workload.{text}")
                      for text in ("gpu=A100", "gpu=H100", "gpus=0-15=A100", "gpus=8-15=A100, 0-7=H100", "gpus=0-7=A100")}
                # All of one kind is that kind; rounding each operation twice may differ by some picoseconds.
                self.assertAlmostEqual(by["gpus=0-15=A100"]["step"]["time_ps"] / by["gpu=A100"]["step"]["time_ps"], 1, delta=1e-6)
                self.assertAlmostEqual(by["gpus=0-15=A100"]["mfu"] / by["gpu=A100"]["mfu"], 1, delta=1e-5)
                mixed = by["gpus=8-15=A100, 0-7=H100"]
                self.assertEqual(mixed["gpus"], {"H100": 8, "A100": 8})
                self.assertGreater(mixed["step"]["time_ps"], by["gpu=H100"]["step"]["time_ps"])
                self.assertLess(mixed["step"]["time_ps"], by["gpu=A100"]["step"]["time_ps"])
                # Their peak is a mean.
                step = mixed["step"]["time_ps"] / 1e12
                self.assertAlmostEqual(mixed["mfu"], mixed["flop"] / (step * 8 * (989 + 312) * 1e12), delta=1e-5)
        self.assertIn("\nranks   8 H100 and 8 A100: tp 2", self.sim(scenario, *self.settings("workload.gpus=8-15=A100")).stdout)

    def test_mix__needs_memory_of_each_kind(self):
        scenario = self.scenario(STEP.replace("{gpu: H100}", "{gpu: B200}"))
        large = self.settings("workload.layers=30", "workload.hidden=8192", "workload.ffn=32768", "workload.zero=0")
        self.sim(scenario, *large)
        self.assertRegex(self.sim(scenario, *large, *self.settings("workload.gpus=3=A100"), status=2).stderr,
                         r"workload.0.memory: it needs [\d.]+ GB of A100's 80 ")

    def test_lists__are_refused_at_their_key(self):
        scenario = self.scenario(STEP.replace("batch: 16", "batch: 16\n    slow: 16=2"))
        self.assertIn("s.yaml:14:11: workload.0.slow: 16=2: the step has ranks 0 to 15", self.sim(scenario, status=2).stderr)
        scenario = self.scenario(STEP)
        for setting, wanted in (("slow=1=0", "0: a factor is 0.001 to 1000"), ("slow=1=-2", "-2: a factor"), ("slow=1=nan", "nan: a factor"),
                                ("slow=1=1e9", "1e9: a factor"), ("slow=1-3=2,2=2", "rank 2 is in it twice"), ("gpus=1=H1", "there is no H1; verbena sim --gpus"),
                                ("gpus=H100", "H100: write RANK=... or FIRST-LAST=...")):
            self.assertIn(f"workload.0.{setting[:4]}: {wanted}", self.sim(scenario, "--set", f"workload.{setting}", status=2).stderr)


if __name__ == "__main__":
    Gpus.build, Gpus.root = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
