#!/usr/bin/env python3
"""fabric_test BUILD ROOT: what bench/fabric.py makes of the results of simulations: figures, what is wanted of them, and that two
threads must have the result of one; and how bench/where.py takes their cost apart."""

import os
import subprocess
import sys
import unittest

sys.dont_write_bytecode = True

RESULT = {"packet_hops_per_cpu_s": 3e6, "payload_gb_per_cpu_s": 1.0, "cpu_s": 2.0, "packet_hops": 6e6, "data_packets": 5e5,
          "acks": 5e5, "ack_every": 1,
          "max_rss_bytes": 50e6, "critical_cpu_s": 1.0, "result_hash": "a"}


class Fabric(unittest.TestCase):
    def setUp(self):
        self.figures = fabric.Figures()
        self.simulate = fabric.simulate
        self.addCleanup(setattr, fabric, "simulate", self.simulate)

    def row(self, name):
        return next(row for row in fabric.ROWS if row.name == name)

    def test_row__is_held_against_its_target(self):
        fabric.add_row(self.figures, self.row("1024"), RESULT)
        self.assertEqual(self.figures["1024/hops"].verdict, "met")
        self.assertEqual(self.figures["1024/memory"].verdict, "MISSED")
        self.assertAlmostEqual(self.figures["1024/ns"].median, 333.333, 2)

    def test_row__says_how_packets_are_acknowledged(self):
        fabric.add_row(self.figures, self.row("1024"), {**RESULT, "acks": 5e5 / 16, "ack_every": 16})
        self.assertEqual(self.figures["1024/acks-a-packet"].median, 1 / 16)
        self.assertIn("every 16th", self.figures["1024/acks-a-packet"].text)

    def test_row__without_engines_is_labelled_and_has_no_target(self):
        for name in ("128", "1024", "8192"):
            row = self.row(f"{name}-no-engines")
            self.assertEqual(row.settings, ("transport.endpoint=ideal",))
            fabric.add_row(self.figures, row, RESULT)
            figure = self.figures[f"{row.name}/hops"]
            self.assertEqual((figure.text, figure.verdict), (f"{name}, no engines (not RoCE): packet-hops", ""))

    def test_cache_misses__are_told_a_hop_where_somebody_counts(self):
        fabric.add_row(self.figures, self.row("128"), RESULT, misses=3e7)
        self.assertEqual(self.figures["128/cache-misses"].median, 5)
        fabric.add_row(self.figures, self.row("1024"), RESULT)
        self.assertNotIn("1024/cache-misses", self.figures)

    def test_cache_misses__are_counted_or_it_is_said_why_not(self):
        counter = fabric.CacheMisses()
        if counter.reason:
            self.assertNotIn("\n", counter.reason)
            return
        before = counter.total()
        subprocess.run(["/bin/true"], check=True)
        self.assertGreaterEqual(counter.total(), before)

    def test_two_threads__go_by_the_critical_path(self):
        fabric.simulate = lambda *_: RESULT
        fabric.add_two_threads(self.figures, "build")
        self.assertEqual(self.figures["1024-two-threads/ratio"].median, 2.0)

    def test_two_threads__must_have_the_result_of_one(self):
        fabric.simulate = lambda build, example, settings=(): {**RESULT, "result_hash": "b" if settings else "a"}
        with self.assertRaises(fabric.Failure):
            fabric.add_two_threads(self.figures, "build")


class Where(unittest.TestCase):
    def test_differences__tell_engines_from_the_floor_and_data_from_acks(self):
        """Made of 100 for data and 70 for an ack, of which the engine has 30 and 20."""
        runs = {(kind, is_sparse): where.Run(data + ack * (1 / 16 if is_sparse else 1), 1 / 16 if is_sparse else 1)
                for kind, data, ack in (("engine", 100, 70), ("ideal", 70, 50)) for is_sparse in (False, True)}
        self.assertEqual([round(value, 6) for value in where.split(runs).values()], [70, 50, 30, 20])

    def test_differences__run_each_kind_in_each_round(self):
        asked = []

        def simulate(_, settings):
            asked.append(settings)
            return {**RESULT, "acks": 5e5 if "transport.ack-every=1" in settings else 5e5 / 16}

        lines = list(where.by_differences(simulate, "permutation-128", 2))
        self.assertEqual((len(asked), len(set(asked))), (8, 4))
        self.assertIn("333.3 ns a hop", lines[0])

    def test_groups__have_every_file_of_their_rooms(self):
        for file, group in (("fabric/events", "queue of events"), ("fabric/links", "links and switches"),
                            ("fabric/ideal_ends", "wires and flows of endpoints"), ("roce/requester", "engine, requester"),
                            ("core/execute", "engine, responder"), ("cc/none", "engine, acknowledgements"),
                            ("engine/lane", "engine, lane and the rest"), (None, where.ELSEWHERE)):
            self.assertEqual(where.group_of(file), group)
        for _, members in where.GROUPS:
            for member in members:
                path = f"{ROOT}/src/{member}"
                self.assertTrue(os.path.exists(path) or os.path.exists(f"{path}.c"), f"there is no {member}")

    def test_functions__are_found_in_the_objects_of_their_files(self):
        files = where.functions(BUILD)
        self.assertEqual((files["fabric_run"], files["vb_lane_receive"]), ("fabric/run", "roce/receive"))

    def test_samples__are_counted_by_the_file_of_their_function(self):
        found = where.shares(["a", "a", "b", "main"], {"a": "roce/responder", "b": "fabric/port"})
        self.assertEqual((found["engine, responder"], found["links and switches"], found[where.ELSEWHERE]), (0.5, 0.25, 0.25))

    def test_tools__that_are_not_there_are_said(self):
        self.addCleanup(setattr, where, "sample", where.sample)
        self.addCleanup(setattr, where.shutil, "which", where.shutil.which)

        def refuse(_):
            raise FileNotFoundError("perf")

        where.sample, where.shutil.which = refuse, lambda _: None
        said = where.by_tool(lambda *_: [], "permutation-128", "/nowhere")
        self.assertEqual([line.split(":")[0] for line in said], ["no samples", "no instruction counts"])


if __name__ == "__main__":
    ROOT, BUILD = sys.argv.pop(), sys.argv.pop()
    sys.path.insert(0, ROOT + "/bench")
    import fabric
    import where
    unittest.main()
