"""Live tests: programs in user namespaces, where an id may be anybody's."""

import os
import re

import places
import programs
from live import live_test
from process import Failure, Process

USER, STRANGER, NOBODY = 1000, 1001, 65534


def as_user(number):
    return ["setpriv", f"--reuid={number}", f"--regid={number}", "--clear-groups", "--inh-caps=-all", "--"]


def as_nobody_of_a_namespace():
    """A user whom a namespace of one line calls nobody, as which it shows all users that it does not map."""
    return [*as_user(USER), "unshare", "--user", f"--map-user={NOBODY}", f"--map-group={NOBODY}", "--"]


def in_namespace(place, *arguments):
    # A Process of Verbena would have its launcher in front of all this.
    command = [*as_nobody_of_a_namespace(), place.launcher, "run", "--", *arguments]
    return Process(place, command, settings={"VERBENA_STATS": "1"}, through_verbena=False, name=arguments[0])


PINGPONG = ("ibv_rc_pingpong", "-d", "vb_lo", "-g", "0", "-s", "65536", "-n", "2000", "-p")


def expect_namespaces():
    if os.geteuid() != 0:
        raise places.Unavailable("needs root")


@live_test("two programs of a user namespace's nobody share memory, and read each other's")
def nobody_of_a_namespace(context):
    expect_namespaces()
    path = context.world.own_loopback("users")
    pair = " ".join([*PINGPONG, str(programs.next_port())])
    with in_namespace(path.server, "sh", "-c", f"{pair} & sleep 0.5; {pair} 127.0.0.1 && wait $!") as process:
        process.wait_success(30)
        if process.ways() != {"local"} or process.stderr.count("by one copy") != 2:
            raise Failure(f"they do not read each other's memory\n{process.evidence()}")
    context.world.expect_nothing_left(path)


@live_test("a stranger who looks like a user namespace's nobody gets nothing of its broker")
def stranger_beside_nobody(context):
    expect_namespaces()
    path = context.world.own_loopback("users")
    with in_namespace(path.server, *PINGPONG, programs.next_port()) as victim:
        programs.wait_reachable(path.server)
        command = [*as_user(STRANGER), context.program("hostile"), "--seconds", "3", "--only", "slots,introductions"]
        with Process(path.server, command, through_verbena=False, name="hostile") as hostile:
            hostile.wait_success(20)
            counts = dict(re.findall(r"(\w+)=(\d+)", hostile.stdout.splitlines()[-1]))
            if counts["slots"] != "0" or counts["met"] != "0":
                raise Failure(f"it got {counts['slots']} slots and {counts['met']} introductions\n{hostile.evidence()}")
        if victim.status is not None:
            raise Failure(f"the victim did not live through it\n{victim.evidence()}")
