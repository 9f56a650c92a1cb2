"""The live tests: what happens to running programs when processes die, stall, crowd or meet bad settings.

Each is a function of a Context in one of the live_*.py files, entered in TESTS by @live_test."""

import collections
import importlib
import pathlib

LiveTest = collections.namedtuple("LiveTest", "name run")
TESTS = []


class Context:
    """What a live test gets: a world to make places in, and the directory, readable by everyone, of our own programs."""

    def __init__(self, world, directory):
        self.world = world
        self.directory = pathlib.Path(directory)

    def program(self, name):
        """Where our own program of that name lies: peer, dial, or mpi_check, which needs the distribution's MPI."""
        return self.directory / name


def live_test(name):
    def enter(function):
        TESTS.append(LiveTest(name, function))
        return function
    return enter


for module in ("live_kill", "live_load", "live_settings", "live_ucx", "live_sysfs", "live_cm", "live_connections", "live_rsocket",
               "live_repoll", "live_fabric", "live_qperf", "live_iser"):
    importlib.import_module(module)
