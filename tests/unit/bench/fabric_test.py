#!/usr/bin/env python3
"""fabric_test ROOT: what bench/fabric.py makes of the results of simulations: figures, what is wanted of them, and that two
threads must have the result of one."""

import sys
import unittest

sys.dont_write_bytecode = True

RESULT = {"packet_hops_per_cpu_s": 3e6, "payload_gb_per_cpu_s": 1.0, "cpu_s": 2.0, "packet_hops": 6e6, "data_packets": 5e5,
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

    def test_two_threads__go_by_the_critical_path(self):
        fabric.simulate = lambda *_: RESULT
        fabric.add_two_threads(self.figures, "build", RESULT)
        self.assertEqual(self.figures["1024-two-threads/ratio"].median, 2.0)

    def test_two_threads__must_have_the_result_of_one(self):
        fabric.simulate = lambda *_: {**RESULT, "result_hash": "b"}
        with self.assertRaises(fabric.Failure):
            fabric.add_two_threads(self.figures, "build", RESULT)


if __name__ == "__main__":
    sys.path.insert(0, sys.argv.pop() + "/bench")
    import fabric
    unittest.main()
