"""Tests of the runner itself: no Verbena needed, `python3 -m unittest selftest`."""

import os
import sys
import time
import unittest

sys.dont_write_bytecode = True

import matrix
import pairwise
import places
import programs
from process import Failure, Granted, Process, finish


class Pairwise(unittest.TestCase):
    def test_every_pair_is_covered(self):
        rows = list(matrix.product(matrix.ALL_MTUS))
        every = set().union(*(pairwise.pairs_of(row) for row in rows))
        covered = set().union(*(pairwise.pairs_of(row) for row in matrix.selection()))
        self.assertEqual(every - covered, set())

    def test_the_selection_is_small_and_repeats(self):
        selection = matrix.selection()
        self.assertLess(len(selection), 300)
        self.assertEqual(selection, matrix.selection())

    def test_no_row_is_invalid(self):
        for case in matrix.product(matrix.ALL_MTUS):
            self.assertLessEqual(case.mtu, matrix.PATHS[case.path])
            if matrix.is_datagram(case.kind):
                self.assertLessEqual(case.size, case.mtu or matrix.PATHS[case.path])

    def test_names_are_unique(self):
        names = [matrix.name(case) for case in matrix.product(matrix.ALL_MTUS)]
        self.assertEqual(len(names), len(set(names)))


class Reading(unittest.TestCase):
    def test_perftest_rows(self):
        text = " #bytes     #iterations    BW peak[MB/sec]\n 65536      1000             5000.12            4900.50\t\t   0.08\n"
        self.assertEqual(programs.result_rows(text), [[65536, 1000, 5000.12, 4900.5, 0.08]])

    def test_perftest_rows_with_an_undefined_deviation(self):
        self.assertEqual(len(programs.result_rows(" 8  1  2.5  2.5  2.5  2.5  -nan  2.5  2.5\n")), 1)

    def test_gids(self):
        text = "\t\t\tGID[  0]:\t\t::ffff:127.0.0.1, RoCE v2\n\t\t\tGID[  1]:\t\t::1, RoCE v2\n"
        self.assertEqual(places.parse_gids(text), [(0, "::ffff:127.0.0.1"), (1, "::1")])


class CpuTime(unittest.TestCase):
    BUSY = "import os, time\nos.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\nend = time.monotonic() + 1.5\n" \
           "while time.monotonic() < end: pass"

    def start(self, *arguments):
        place = places.Place([], "here", "no-launcher", "vb_lo", "127.0.0.1", "::1")
        process = Process(place, arguments, through_verbena=False)
        self.addCleanup(process.__exit__)
        return process

    @unittest.skipUnless(os.path.exists("/proc/self/schedstat"), "this kernel does not say who waits for a core")
    def test_share_is_what_was_had_of_what_was_wanted(self):
        processes = [self.start("python3", "-c", self.BUSY) for _ in range(3)]    # on one core
        with Granted(processes, 0.3) as granted:
            finish(processes, 30)
        self.assertLess(granted.share(), 0.6)
        self.assertGreater(granted.share(), 0)

    def test_share_of_one_that_sleeps_is_all(self):
        process = self.start("sleep", 3)
        with Granted([process], 1.5) as granted:
            finish([process], 30)
        self.assertEqual(granted.share(), 1)


class Processes(unittest.TestCase):
    def setUp(self):
        self.place = places.Place([], "here", "no-launcher", "vb_lo", "127.0.0.1", "::1")

    def shell(self, text):
        return Process(self.place, ["sh", "-c", text], through_verbena=False)

    def test_output_and_status(self):
        with self.shell("echo out; echo err >&2") as process:
            process.wait_success(10)
        self.assertEqual((process.stdout, process.stderr), ("out\n", "err\n"))

    def test_a_hang_is_a_failure_with_evidence_and_leaves_nothing(self):
        began = time.monotonic()
        with self.shell("echo before; sleep 60") as process:
            with self.assertRaisesRegex(Failure, "(?s)did not end.*before.*thread"):
                process.wait(0.3)
        self.assertLess(time.monotonic() - began, 30)
        self.assertIsNotNone(process.status)

    def test_the_first_failure_of_several_is_named(self):
        with self.shell("sleep 0.2") as good, self.shell("echo because; exit 3") as bad:
            with self.assertRaisesRegex(Failure, "(?s)status 3.*because"):
                finish([good, bad], 10)

    def test_a_death_by_signal_is_named(self):
        with self.shell("kill -SEGV $$") as process:
            with self.assertRaisesRegex(Failure, "SIGSEGV"):
                process.wait_success(10)

    def test_stats_are_summed(self):
        with self.shell("echo 'verbena: engine: tx_bytes=7 timeouts=8' >&2") as process:
            process.wait_success(10)
        self.assertEqual(process.stats(), {"tx_bytes": 7, "timeouts": 8})

    def test_listening_is_seen(self):
        code = "import socket,time;s=socket.create_server(('127.0.0.1',39999));time.sleep(20)"
        with Process(self.place, ["python3", "-c", code], through_verbena=False) as process:
            process.wait_listening(39999)


if __name__ == "__main__":
    unittest.main()
