#!/usr/bin/env python3
"""faults_test BUILD PROGRAM: calls, events and connections fail as VERBENA_FAULTS says, of a program of our own and of
rping, perftest and a pingpong. Each run has a network of its own."""

import pathlib
import shlex
import shutil
import subprocess
import sys
import unittest


PYVERBS = """
import errno, os, sys
from pyverbs.cq import CQEX, CqInitAttrEx, PollCqAttr
from pyverbs.device import Context, get_device_list
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.pyverbs_error import PyverbsRDMAError

context = Context(name=get_device_list()[0].name.decode())
pd = PD(context)
regions = []
for number in range(1, 4):
    try:
        regions.append(MR(pd, 4096, 0))
        print(f"MR {number}: ok")
    except PyverbsRDMAError as error:
        print(f"MR {number}: {errno.errorcode[error.error_code]}")
cq = CQEX(context, CqInitAttrEx(cqe=16))
for number in range(1, 3):
    print(f"poll {number}: {errno.errorcode[cq.start_poll(PollCqAttr())]}")
sys.stdout.flush()
child = os.fork()
if child == 0:
    sys.exit(0)  # its destructors destroy what is the parent's
print(f"child 1: {os.waitpid(child, 0)[1]}")
"""


def command(faults, program):
    return shlex.join(["env", f"VERBENA_FAULTS={faults}", "VERBENA_LOG=info", str(VERBENA), "run", "--stats", "--no-preload", "--",
                       *program])


def in_network(script):
    done = subprocess.run(["unshare", "-rn", "sh", "-c", "ip link set lo up; " + script], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60)
    return done.stdout.splitlines()


def run(faults, *program):
    """What the program and the library say."""
    return in_network(command(faults, program))


def run_pair(faults_of_server, faults_of_client, server, client):
    """What both say. A server whose client has failed would wait for another: a second later it is told to end."""
    return in_network(f"timeout 20 {command(faults_of_server, server)} & sleep 1; timeout 20 {command(faults_of_client, client)}; "
                      "sleep 1; kill $! 2>/dev/null; wait")


def results(lines, call):
    return [line.split(": ")[1] for line in lines if line.startswith(call + " ")]


class OurProgram(unittest.TestCase):
    def step(self, faults, step):
        lines = run(faults, str(PROGRAM), step)
        self.assertFalse([line for line in lines if "broken" in line or "Sanitizer" in line], lines)
        return lines

    def test_the_third_call_fails_and_the_fourth_works(self):
        lines = self.step("verb:ibv_reg_mr:nth=3:ENOMEM,verb:ibv_create_cq:nth=2:EIO", "regions")
        self.assertEqual(results(lines, "ibv_reg_mr"), ["ok", "ok", "ENOMEM", "ok", "ok", "ok"])
        self.assertIn("verbena: fault verb ibv_reg_mr call 3: ENOMEM", lines)
        self.assertIn("verbena: fault verb ibv_create_cq call 2: never reached: called 0 times", lines)

    def test_every_and_from(self):
        every = self.step("verb:ibv_reg_mr:every=2:EFAULT", "regions")
        self.assertEqual(results(every, "ibv_reg_mr"), ["ok", "EFAULT"] * 3)
        self.assertIn("verbena: fault verb ibv_reg_mr every 2: EFAULT, 3 of 6 calls", every)
        self.assertEqual(results(self.step("verb:ibv_reg_mr:from=5:EFAULT", "regions"), "ibv_reg_mr"), ["ok"] * 4 + ["EFAULT"] * 2)

    def test_chances_repeat_with_their_seed(self):
        first, second = (results(self.step("verb:ibv_reg_mr:p=50%:EFAULT,seed=7", "regions"), "ibv_reg_mr") for _ in range(2))
        self.assertEqual(first, second)
        self.assertEqual(set(first), {"ok", "EFAULT"})

    def test_operations_of_the_context(self):
        lines = self.step("verb:ibv_post_recv:nth=2:ENOSPC,verb:ibv_poll_cq:nth=1:EIO", "posts")
        self.assertEqual(results(lines, "ibv_post_recv"), ["ok", "ENOSPC", "ok"])
        self.assertEqual(results(lines, "ibv_poll_cq"), ["EIO", "ok", "ok"])

    def test_the_extended_poller(self):
        lines = self.step("verb:ibv_start_poll:nth=1:EIO,verb:ibv_next_poll:nth=2:EFAULT", "polls")
        self.assertEqual(results(lines, "ibv_start_poll"), ["EIO", "ok"])
        self.assertEqual(results(lines, "ibv_next_poll"), ["ok", "EFAULT"])

    def test_a_batch_that_fails_is_dropped(self):
        lines = self.step("verb:ibv_wr_complete:nth=2:ENOMEM", "batches")
        self.assertEqual(results(lines, "ibv_wr_complete"), ["ok", "ENOMEM", "ok"])
        self.assertEqual(results(lines, "completed"), ["1", "0", "3"])

    def test_completion_counters(self):
        lines = self.step(",".join(f"verb:ibv_{call}_comp_cntr:nth=2:EIO" for call in ("set", "inc", "read"))
                          + ",verb:ibv_destroy_comp_cntr:nth=1:EBUSY", "counters")
        for call in "set", "inc", "read":
            self.assertEqual(results(lines, f"ibv_{call}_comp_cntr"), ["ok", "EIO"])
        self.assertEqual(results(lines, "ibv_destroy_comp_cntr"), ["EBUSY", "ok"])
        self.assertIn("value: 11", lines)

    def test_copies_of_device_memory(self):
        lines = self.step("verb:ibv_memcpy_to_dm:nth=2:EIO,verb:ibv_memcpy_from_dm:nth=1:EIO", "device memory")
        self.assertEqual(results(lines, "ibv_memcpy_to_dm"), ["ok", "EIO"])
        self.assertEqual(results(lines, "ibv_memcpy_from_dm"), ["EIO", "ok"])

    def test_a_child_goes_on_from_its_parents_counts(self):
        lines = self.step("verb:ibv_reg_mr:nth=3:ENOMEM,event:port_err:after=10ms", "forks")
        self.assertEqual(results(lines, "child"), ["ENOMEM", "ok"])  # the second call was about the parent's device
        self.assertEqual(results(lines, "parent"), ["ok", "ok", "ENOMEM"])
        self.assertEqual(lines.count("verbena: fault verb ibv_reg_mr call 3: ENOMEM"), 4, lines)  # struck and told, by both
        self.assertIn("event: port error", lines)  # of the child's own device

    def test_events_of_queues(self):
        lines = self.step("event:cq_err:after=10ms,event:srq_limit:after=60ms,event:srq_err:after=110ms", "queues")
        self.assertEqual([line for line in lines if line.startswith("event")],
                         ["event: CQ error", "event: SRQ limit reached", "event: SRQ catastrophic error"])

    def test_the_event_of_a_work_queue(self):
        self.assertIn("event: WQ fatal", self.step("event:wq_fatal:after=10ms", "work queue"))

    def test_events_of_queues_go_with_them(self):
        self.assertIn("events: gone", self.step("event:srq_err:after=10ms,event:cq_err:after=10ms", "gone"))

    def test_events_of_a_qp_are_events_alone(self):
        lines = self.step("event:qp_req_err:after=10ms,event:qp_access_err:after=60ms", "told")
        self.assertEqual([line for line in lines if line.startswith("event")],
                         ["event: invalid request local work queue error", "event: local access violation work queue error"])

    def test_opening_fails_once(self):
        self.assertEqual(results(self.step("verb:ibv_open_device:nth=1:EMFILE", "regions"), "ibv_open_device"), ["EMFILE"])

    def test_the_port_goes_down_and_comes_up(self):
        lines = self.step("event:port_down:after=500ms,event:port_up:after=1500ms", "port")
        self.assertEqual([line for line in lines if line.startswith(("port", "event"))],
                         ["port: active", "event: port error", "port: down", "event: port active", "port: active"])

    def test_a_failed_qp_is_in_the_error_state(self):
        lines = self.step("event:qp_fatal:after=10ms", "qp")
        self.assertIn("QP: ERR", lines)
        self.assertIn("verbena: fault event qp_fatal: 1", lines)

    def test_a_failed_device_fails_calls_and_can_be_closed(self):
        self.assertEqual(results(self.step("event:device_fatal:after=10ms", "device"), "ibv_reg_mr"), ["EIO"] * 6)


class RealPrograms(unittest.TestCase):
    def assert_said(self, lines, *wanted):
        for line in wanted:
            self.assertTrue([1 for said in lines if line in said], (line, lines))

    def need_a_build_without_asan(self):
        if b"libasan.so" in (VERBENA.parent.parent / "verbs/libibverbs.so.1").read_bytes():
            self.skipTest("it crashes under AddressSanitizer, which is loaded late with the libraries")

    def rping(self, server, client, count=2):
        if not shutil.which("rping"):
            self.skipTest("there is no rping")
        arguments = ["-a", "127.0.0.1", "-C", str(count)]
        return run_pair(server, client, ["rping", "-s", *arguments], ["rping", "-c", *arguments])

    def test_a_request_is_rejected(self):
        self.assert_said(self.rping("cm:reject:nth=1", ""), "RDMA_CM_EVENT_REJECTED, error 28",
                         "verbena: fault cm reject call 1: reason 28")

    def test_a_request_gets_no_answer(self):
        self.assert_said(self.rping("", "cm:timeout:nth=1"), "RDMA_CM_EVENT_UNREACHABLE, error -110",
                         "fault cm timeout call 1: ETIMEDOUT")

    def test_a_connection_ends_once_it_is_established(self):
        for faults in ("cm:disconnect:nth=1", ""), ("", "cm:disconnect:nth=1"):
            self.assert_said(self.rping(*faults, count=10_000_000), "server DISCONNECT EVENT", "client DISCONNECT EVENT",
                             "fault cm disconnect call 1: disconnected")

    def test_librdmacm_fails(self):
        self.assert_said(self.rping("", "verb:rdma_resolve_addr:nth=1:ENODEV"), "rdma_resolve_addr: No such device",
                         "fault verb rdma_resolve_addr call 1: ENODEV")

    def test_a_call_that_librdmacm_makes_fails(self):
        self.assert_said(self.rping("", "verb:ibv_create_qp:nth=1:ENOMEM"), "rdma_create_qp: Cannot allocate memory")

    def test_pyverbs_raises_the_error(self):
        if subprocess.run(["/usr/bin/python3", "-c", "import pyverbs.cq"], capture_output=True).returncode:
            self.skipTest("there is no pyverbs")
        self.need_a_build_without_asan()
        lines = run("verb:ibv_reg_mr:nth=2:ENOMEM,verb:ibv_start_poll:nth=1:EIO", "/usr/bin/python3", "-B", "-c", PYVERBS)
        self.assertEqual(results(lines, "MR"), ["ok", "ENOMEM", "ok"])
        self.assertEqual(results(lines, "poll"), ["EIO", "ENOENT"])
        self.assertEqual(results(lines, "child"), ["0"])
        self.assertEqual([line for line in lines if "was forked from" in line], [])

    def test_perftest_says_its_own_error(self):
        if not shutil.which("ib_write_bw"):
            self.skipTest("there is no ib_write_bw")
        self.need_a_build_without_asan()
        lines = run_pair("verb:ibv_reg_mr:nth=1:ENOMEM", "", ["ib_write_bw", "-x", "0"], ["ib_write_bw", "-x", "0", "127.0.0.1"])
        self.assert_said(lines, "allocate MR", "fault verb ibv_reg_mr call 1: ENOMEM")


class Names(unittest.TestCase):
    def test_every_listed_call_and_event_is_accepted(self):
        listed = subprocess.run([VERBENA, "run", "--faults", "list"], text=True, capture_output=True, check=True).stdout.split()
        calls = [name for name in listed if name.startswith("verb:")]
        self.assertGreater(len(calls), 100)
        items = [name + ":nth=1:ENOMEM" for name in calls] + [name + ":after=1s" for name in listed if name.startswith("event:")]
        items += [name + ":nth=1" for name in listed if name.startswith("cm:")]
        for at in range(0, len(items), 30):
            done = subprocess.run([VERBENA, "run", "--faults", ",".join(items[at:at + 30]), "--no-preload", "--", "true"],
                                  text=True, capture_output=True)
            self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    VERBENA = pathlib.Path(sys.argv[1]) / "src" / "cli" / "verbena"
    PROGRAM = pathlib.Path(sys.argv[2])
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
