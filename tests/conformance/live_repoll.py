"""Live test: epoll's calls over rsockets."""

import pathlib

import programs
from live import live_test
from live_cm import each_path
from process import Process, finish

PROGRAM = pathlib.Path(__file__).with_name("repoll.py")
SECONDS = 60


@live_test("repoll: rsockets and a pipe in one list, which changes under a wait")
def repoll(context):
    for path, address in each_path(context, versions=(4,), names=("vb_lo", "vb_lo_wire")):
        command = ["/usr/bin/python3", "-B", PROGRAM, address, programs.next_port()]
        with Process(path.server, command, name="repoll") as process:
            finish([process], SECONDS)
        programs.expect(process, r"^done$", "that all went as it should")
