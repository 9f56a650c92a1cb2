"""What moves key-value caches, over Verbena and over its own TCP: NIXL and Mooncake, from the wheels that people install. Both ends
spin."""

import functools
import pathlib
import sys

import measure
import programs
import stacks
from measure import Failure, Process, finish

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests/wheels"))

import packages

PROGRAM = HERE / "transfer_pair.py"
BLOCKS = 16  # of one transfer


@functools.cache
def environment(build, library):
    """The virtual environment of `make conformance-wheels`, with this in it; made at first use."""
    made = packages.Environment(pathlib.Path(build) / "venv-wheels")
    try:
        made.install(library)
    except packages.NotInstalled as reason:
        raise Failure(str(reason))
    return made


def settings_of(ends, library, over_verbena):
    def at(place):
        if not over_verbena:
            return stacks.UCX_WAYS["tcp"](place) if library == "nixl" else None
        return {**ends.settings, "VERBENA_DEVICES": place.device, **({"UCX_TLS": "rc_verbs,ud_verbs:aux"} if library == "nixl" else {})}
    return at


def move(ends, build, library, over_verbena, block, seconds):
    """(Gb/s of reads, of writes): transfers of blocks of that many bytes."""
    port, python, settings = programs.next_port(), environment(build, library).python, settings_of(ends, library, over_verbena)

    def words(role, place):
        device = [place.device] if library == "mooncake" and over_verbena else []
        return [python, "-B", PROGRAM, library, "verbs" if over_verbena else "tcp", role, place.address[4], ends.server.address[4], port,
                block, seconds, *device]

    with Process(ends.server, words("target", ends.server), settings=settings(ends.server), through_verbena=over_verbena,
                 name=f"{library} target") as target:
        target.wait_listening(port, measure.PATIENCE)
        with Process(ends.client, words("initiator", ends.client), settings=settings(ends.client), through_verbena=over_verbena,
                     name=f"{library} initiator") as initiator:
            finish([target, initiator], measure.PATIENCE)
    if over_verbena:
        programs.expect_counted((target, initiator), "bytes", 2 * BLOCKS * block)
    return tuple(float(programs.expect(initiator, rf"^{way}_gbps=([\d.]+)", "its rate")[1]) for way in ("read", "write"))
