"""Tests of the chaos test itself, of what needs neither Verbena nor root: `python3 -m unittest selftest`."""

import io
import contextlib
import json
import pathlib
import struct
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "conformance"))

import actors
import checks
import eavesdrop
import report
import scenarios
import schedule

PLANS = [schedule.plan(seed, number, 25.0) for seed in range(40) for number in range(4)]


class Schedule(unittest.TestCase):
    def test_it_follows_from_the_seed(self):
        self.assertEqual(schedule.plan(7, 3, 25.0), schedule.plan(7, 3, 25.0))
        self.assertNotEqual(schedule.plan(7, 3, 25.0).events, schedule.plan(8, 3, 25.0).events)
        self.assertNotEqual(schedule.plan(7, 3, 25.0).events, schedule.plan(7, 5, 25.0).events)

    def test_events_come_in_order_and_end_with_the_round(self):
        for plan in PLANS:
            times = [event.at for event in plan.events]
            self.assertEqual(times, sorted(times))
            self.assertTrue(all(event.at + event.seconds <= plan.seconds + 0.01 for event in plan.events))

    def test_everything_happens_somewhere(self):
        happened = {(event.what, event.whom) for plan in PLANS for event in plan.events}
        victims = ("parent", "worker", "both", "forwarder", "client", "server")
        wanted = {(what, whom) for what in ("kill", "stop") for whom in victims}
        wanted |= {("flood", kind) for kind, _ in schedule.FLOODS} | {("hostile", "neighbour")}
        self.assertEqual(happened, wanted)
        self.assertEqual({plan.is_lossy for plan in PLANS}, {True, False})

    def test_stops_last_from_a_tenth_to_five_seconds(self):
        stops = [event.seconds for plan in PLANS for event in plan.events if event.what == "stop"]
        self.assertTrue(all(0.09 <= seconds <= 5 for seconds in stops))
        self.assertGreater(max(stops), 4)
        self.assertLess(min(stops), 0.2)

    def test_root_s_broker_is_never_killed_whole(self):
        for plan in PLANS:
            for event in plan.events:
                self.assertFalse(plan.is_shared and event.whom == "both")
                self.assertFalse(not plan.is_shared and (event.what == "hostile" or event.whom == "forwarder"))

    def test_what_a_broker_suffers_does_not_overlap(self):
        for plan in PLANS:
            for host in schedule.HOSTS:
                free_at = 0.0
                for event in plan.events:
                    if event.host == host and event.whom in ("parent", "worker", "both"):
                        self.assertGreaterEqual(event.at + 0.001, free_at)
                        free_at = event.at + event.seconds + (schedule.BROKER_REST_S if plan.is_shared else 0)

    def test_an_event_is_described(self):
        event = schedule.Event(1.5, "flood", "req", 1, 2.0, 20000)
        self.assertEqual(schedule.describe(event), "  1.50 s  flood req at host b of 20000 a second for 2.0 s")


class Reading(unittest.TestCase):
    def test_the_last_whole_status_counts(self):
        text = "listening\nstatus made=1 worst_ms=2.5 at=1.0\ntold x\nstatus made=7 worst_ms=3 at=2.0\nstatus made=9"
        self.assertEqual(actors.parse_status(text), {"made": 7, "worst_ms": 3, "at": 2.0})
        self.assertEqual(actors.parse_status("listening\n"), {})

    def test_wrong_bytes_are_seen(self):
        for line in ("WRONG connection 0000: message 1", "wrong data: QP 0 message 3 near byte 8 of 64",
                     "the counter of QP 0 is 7, not 8", "QP 1: completion of 4 came instead of 3"):
            self.assertTrue(actors.WRONG_BYTES.search(line), line)
        self.assertFalse(actors.WRONG_BYTES.search("completion with error: transport retry counter exceeded"))

    def test_counts_of_a_last_line(self):
        text = "attack slots at 0.0 s\nhostile slots=3 marks=0\n"
        self.assertEqual(checks.parse_counts(text, "hostile"), {"slots": 3, "marks": 0})
        self.assertEqual(checks.parse_counts("", "hostile"), {})

    def test_connections_in_a_capture(self):
        mad = bytearray(256)
        mad[1] = eavesdrop.CLASS_CM
        struct.pack_into(">H", mad, 16, eavesdrop.ATTRIBUTE_REP)
        struct.pack_into(">II", mad, 24, 0x0500002A, 0x0300002B)
        mad[36:39] = b"\x05\x00\x77"
        packet = bytes([0x45]) + bytes(27) + bytes(5) + b"\0\0\1" + bytes(12) + bytes(mad)
        record = struct.pack("<IIII", 0, 0, len(packet), len(packet)) + packet
        self.assertEqual(eavesdrop.connections(bytes(24) + record + record[:40]), [(0x0300002B, 0x0500002A, 0x050077)])


class Reporting(unittest.TestCase):
    def test_the_last_line_counts_and_failures_are_named(self):
        with tempfile.TemporaryDirectory() as scratch, contextlib.redirect_stdout(io.StringIO()) as said:
            file = pathlib.Path(scratch) / "report.json"
            one = report.Report(5, str(file))
            one.add("good", "passed")
            one.add("bad", "failed", "because\nof this")
            one.worst("worst_connect_ms", 12)
            self.assertEqual(one.close(), 1)
            whole = json.loads(file.read_text())
        self.assertEqual(said.getvalue().splitlines()[-1], "1 passed, 1 failed, 0 skipped")
        self.assertIn("\nFAILED: chaos: bad: because\n", said.getvalue())
        self.assertEqual((whole["seed"], whole["figures"]["worst_connect_ms"]), (5, 12))

    def test_scenarios_have_names_of_their_own_and_say_what_they_are(self):
        names = [entry.name for entry in scenarios.SCENARIOS]
        self.assertEqual(len(names), len(set(names)))
        self.assertTrue(all(entry.about for entry in scenarios.SCENARIOS))


if __name__ == "__main__":
    unittest.main()
