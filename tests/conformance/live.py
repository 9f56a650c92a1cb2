"""The live tests: what happens to running programs when processes die, stall, crowd or meet bad settings.

Each is a function of a Context in one of the live_*.py files, entered in TESTS by @live_test. Processes of one host talk
through memory; what is to be shown of packets says PACKETS, what holds either way says BOTH and runs twice."""

import collections
import importlib
import pathlib

import places

LiveTest = collections.namedtuple("LiveTest", "name run settings is_in_check")
TESTS = []
MEMORY, PACKETS = {}, places.WIRE  # settings of all that runs in the test's world
BOTH = (MEMORY, PACKETS)


class Context:
    """What a live test gets: a world to make places in, and the directory, readable by everyone, of our own programs."""

    def __init__(self, world, directory):
        self.world = world
        self.directory = pathlib.Path(directory)

    def program(self, name):
        """Where our own program of that name lies: peer, dial, queues, or mpi_check, which needs the distribution's MPI."""
        return self.directory / name


def live_test(name, ways=(MEMORY,), is_in_check=True):
    """is_in_check: without it the test runs only with --all-live."""
    def enter(function):
        for settings in ways:
            kind = ", as packets" if len(ways) > 1 and settings is PACKETS else ""
            TESTS.append(LiveTest(name + kind, function, settings, is_in_check))
        return function
    return enter


for module in ("live_kill", "live_silence", "live_load", "live_local_peers", "live_settings", "live_users", "live_ucx", "live_sysfs", "live_cm", "live_connections", "live_rsocket",
               "live_repoll", "live_congestion", "live_failover", "live_fabric", "live_qperf", "live_iser", "live_loss"):
    importlib.import_module(module)
