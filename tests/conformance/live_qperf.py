"""Live tests: qperf by the connection manager. Its UC and UD tests, and those of RC without -cm 1, name their peer by
LID, which RoCE does not have: they end with an error, as on Linux's rxe."""

import contextlib
import re
import shutil

import places
import programs
from live import BOTH, live_test
from process import Failure, Process

TESTS = ("rc_bw", "rc_bi_bw", "rc_lat", "rc_rdma_read_bw", "rc_rdma_read_lat", "rc_rdma_write_bw", "rc_rdma_write_lat",
         "rc_rdma_write_poll_lat", "rc_compare_swap_mr", "rc_fetch_add_mr", "ver_rc_compare_swap", "ver_rc_fetch_add")
BY_LID = {"rc_bw": "failed to modify QP to RTR", "uc_bw": "failed to modify QP to RTR",
          "ud_lat": "failed to create address handle"}
PORT = 19765  # its own
SECONDS = 30


def client(path, test, *more, user="root"):
    return Process(path.client, ["qperf", path.server.address[4], "-t", "1", *more, test], user,
                   name=f"client qperf {test}")


@contextlib.contextmanager
def served(context, name, user="root"):
    """The path, and the server on it."""
    if not shutil.which("qperf"):
        raise places.Unavailable("qperf is not installed")
    path = context.world.open(name)
    if path is None:
        raise places.Unavailable(context.world.unavailable[name])
    with Process(path.server, ["qperf"], user, name="server qperf") as server:
        server.wait_listening(PORT)
        yield path, server


def measure(path, test, *more, user="root"):
    with client(path, test, "-cm", "1", *more, user=user) as process:
        process.wait_success(SECONDS)
    found = programs.expect(process, r"^\s+(?:bw|latency|msg_rate)\s+=\s+([\d.]+)", "its result")
    if float(found[1]) <= 0:
        raise Failure(f"{process.name}: a result of zero\n{process.evidence()}")
    if process.stats().get("tx_packets", 0) + process.stats().get("rx_packets", 0) < 20:
        raise Failure(f"not measured through Verbena\n{process.evidence()}")
    programs.expect_way((process,), "wire" if path.server.prefix != path.client.prefix else None)


@live_test("qperf -cm 1: every RC test, atomics verified")
def every_test(context):
    with served(context, "veth1500") as (path, _):
        for test in TESTS:
            measure(path, test)
        measure(path, "rc_lat", "-cp", "1")


@live_test("qperf -cm 1 on loopback, as an ordinary user", BOTH)
def ordinary_user(context):
    with served(context, "vb_lo", "nobody") as (path, _):
        for test in ("rc_bw", "rc_lat"):
            measure(path, test, user="nobody")


@live_test("qperf without -cm names peers by LID: it says so at once and does not hang")
def by_lid(context):
    with served(context, "veth1500") as (path, server):
        for test, said in BY_LID.items():
            with client(path, test) as process:
                process.wait(SECONDS)
            if process.status == 0 or said not in process.stdout + process.stderr:
                raise Failure(f"status {process.status}, '{said}' expected\n{process.evidence()}")
            if "RoCE needs is_global and sgid_index" not in process.stderr + server.stderr:
                raise Failure(f"no word of what RoCE needs\n{process.evidence()}{server.evidence()}")
