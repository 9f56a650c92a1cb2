#!/usr/bin/env python3
"""figures_test ROOT: what bench/bench.py makes of what was measured: medians, what misses and why, its exit status, the
rows that a person asks for, what tools that count system calls say."""

import contextlib
import io
import os
import sys
import types
import unittest
from unittest import mock

sys.dont_write_bytecode = True


class Verdicts(unittest.TestCase):
    def setUp(self):
        self.figures = bench.Figures()

    def add(self, *values, **wanted):
        for value in values:
            self.figures.add("key", value, "a row", "us", **wanted)

    def status(self, failures=()):
        with contextlib.redirect_stdout(io.StringIO()) as said:
            status = bench.report(self.figures, list(failures))
        return status, said.getvalue()

    def test_median__is_what_is_compared(self):
        self.add(9.0, 1.0, 1.2, at_most=1.3)
        self.assertEqual((self.figures["key"].median, self.figures["key"].verdict), (1.2, "met"))

    def test_quartiles__stand_beside_the_median(self):
        self.add(1.0, 2.0, 3.0, 4.0, 5.0)
        self.assertEqual(self.figures["key"].quartiles, (2.0, 4.0))
        self.assertRegex(self.status()[1], r"a row +3\.000 +2\.000 +4\.000 +1\.000 +5\.000 us")

    def test_one_value__is_its_own_quartiles(self):
        self.add(3.0)
        self.assertEqual(self.figures["key"].quartiles, (3.0, 3.0))

    def test_row_that_misses__is_named_with_its_bound_and_ends_with_1(self):
        self.add(0.5, at_least=0.8, bound="the copy takes that long")
        status, said = self.status()
        self.assertEqual(status, 1)
        self.assertIn("a row: 0.500, wanted >= 0.8: the copy takes that long\n", said)

    def test_row_without_bound__says_so(self):
        self.add(2.0, at_most=1)
        self.assertEqual(self.figures.misses, ["a row: 2.000, wanted <= 1: its bound has not been looked for"])

    def test_rows_that_are_met__end_with_0(self):
        self.add(1.0, at_most=1, at_least=1)
        self.figures.add("other", 3.0, "nothing wanted of it", "us")
        status, said = self.status()
        self.assertEqual(status, 0)
        self.assertNotIn("Missed", said)

    def test_what_is_not_there__is_a_miss_that_says_why(self):
        self.figures.declare_absent("key", "no such setting", "a row", "us", at_most=1)
        status, said = self.status()
        self.assertEqual((status, self.figures.misses), (1, ["a row: no such setting"]))
        self.assertRegex(said, r"a row +no such setting us +<= 1 +MISSED")

    def test_measurement_that_failed__is_a_miss(self):
        status, said = self.status(["part/row failed: it hung"])
        self.assertEqual(status, 1)
        self.assertIn("part/row failed: it hung", said)

    def test_compare__wants_something_of_the_ratio_alone(self):
        self.figures.compare("key", "a row", "us", 3.0, 2.0, "UCX posix tag_lat", at_most=1.3)
        self.assertEqual({key: (figure.median, figure.verdict) for key, figure in self.figures.items()},
                         {"key": (3.0, ""), "key_ucx_posix_tag_lat": (2.0, ""), "key_ratio": (1.5, "MISSED")})


class Rows(unittest.TestCase):
    def names(self, *patterns):
        return [f"{row.part}/{row.name}" for row in bench.chosen(patterns, False)]

    def test_part__has_all_its_rows(self):
        self.assertEqual(self.names("wire"), ["wire/bandwidth", "wire/bandwidth-veth", "wire/event-cpu", "wire/acks",
                                              "wire/latency", "wire/posts", "wire/qps", "wire/engine", "wire/memory"])

    def test_patterns__choose_by_name_and_by_both(self):
        self.assertEqual(self.names("send-*"), ["same-host/send-lat", "same-host/send-rate", "programs-wire/send-8256"])
        self.assertEqual(self.names("same-host/thread", "programs-wire/tag-bw"), ["same-host/thread", "programs-wire/tag-bw"])

    def test_none__means_all_but_the_programs(self):
        self.assertEqual({row.part for row in bench.chosen(None, False)}, {"same-host", "wire"})
        self.assertEqual({row.part for row in bench.chosen(None, True)}, {"programs-wire"})
        self.assertEqual({row.part for row in bench.chosen(["loss"], False)}, {"loss"})

    def test_unknown_row__is_refused(self):
        with self.assertRaises(bench.Failure):
            self.names("thread", "no-such-row")

    def test_row_that_fails__leaves_the_others(self):
        def fail(_):
            raise bench.Failure("it hung\nevidence")

        ran, failures = [], []
        rows = [bench.Row("part", "bad", fail, False), bench.Row("part", "good", ran.append, False)]
        context = bench.Bench("", 1, (0, 1), None, bench.Figures())
        with contextlib.redirect_stderr(io.StringIO()):
            bench.run_rows(context, rows, 2, failures)
        self.assertEqual((failures, ran), (["part/bad failed: it hung"] * 2, [context] * 2))


class Latencies(unittest.TestCase):
    def test_what_is_measured__stands_in_the_table_once(self):
        context = types.SimpleNamespace(figures=bench.Figures(), build="", seconds=1, wire=None)
        p50 = {"tcp": 20.0, "bare": 10.0, "ib_write_lat": 13.0, "ib_send_lat": 12.0}

        def said(name):
            return bench.measure.Latency(p50[name], 2 * p50[name], None)

        with mock.patch.multiple(bench.measure, tcp_latency=lambda *_: said("tcp"), raw_latency=lambda *_: said("bare"),
                                 rdma_latency=lambda _, program, *__: said(program)):
            bench.wire.latency(context)
        figures = [figure for figure in context.figures.values() if "p50" in figure.text]
        self.assertEqual([(figure.median, figure.verdict) for figure in figures],
                         [(20, ""), (10, ""), (13, ""), (12, ""), (0.65, "MISSED"), (1.3, "met"), (0.6, ""), (1.2, "")])
        texts = [figure.text for figure in context.figures.values()]
        self.assertEqual((len(texts), len(set(texts))), (16, 16))


class Pairs(unittest.TestCase):
    def test_which_is_first__changes_from_round_to_round(self):
        for number, order in ((0, ["ours", "theirs"]), (1, ["theirs", "ours"]), (2, ["ours", "theirs"])):
            ran = []
            values = bench.loss.both(types.SimpleNamespace(round=number), lambda name: ran.append(name) or name, "ours", "theirs")
            self.assertEqual((values, ran), (("ours", "theirs"), order))

    def test_round__is_told_to_the_rows(self):
        context, seen = bench.Bench("", 1, (0, 1), None, bench.Figures()), []
        with contextlib.redirect_stderr(io.StringIO()):
            bench.run_rows(context, [bench.Row("part", "row", lambda each: seen.append(each.round), False)], 3, [])
        self.assertEqual(seen, [0, 1, 2])

    def test_ends__have_seeds_of_their_own_and_leave_the_others_alone(self):
        place = types.SimpleNamespace(settings={"VERBENA_LOCAL": "off"})
        ends = bench.loss.struck(bench.between.Ends(place, place, {}), "drop=1%")
        self.assertEqual([each.settings["VERBENA_FAULTS"] for each in (ends.server, ends.client)], ["drop=1%,seed=1", "drop=1%,seed=2"])
        self.assertEqual(place.settings, {"VERBENA_LOCAL": "off"})

    def test_meter__gives_the_rate_between_two_times(self):
        meter = bench.loss.Meter(os.getpid(), "lo")
        meter._seen = [(0.0, 0), (1.0, 100), (2.0, 200), (3.0, 1000)]
        self.assertEqual((meter.rate(0, 2), meter.rate(1.5, 3)), (100, 800))
        self.assertRaises(bench.Failure, meter.rate, 4, 5)


class Calls(unittest.TestCase):
    def test_perf(self):
        said = "# started on Sun Nov 22 19:16:30 2026\n\n29,,raw_syscalls:sys_enter,1218328,100.00,,\n"
        self.assertEqual(bench.between.calls_in("perf", said), 29)

    def test_strace(self):
        said = "        1 prlimit64\n        1 rseq\n--------- ----------------\n       29 total\n"
        self.assertEqual(bench.between.calls_in("strace", said), 29)

    def test_nothing_counted(self):
        self.assertIsNone(bench.between.calls_in("perf", "<not counted>,,raw_syscalls:sys_enter,0,100.00,,\n"))


if __name__ == "__main__":
    sys.path.insert(0, os.path.join(sys.argv.pop(), "bench"))
    import bench
    unittest.main()
