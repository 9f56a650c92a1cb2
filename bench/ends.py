"""Where the two ends of a measurement run, and on what terms: over which path, on which cores, with calls counted."""

import copy
import dataclasses
import os
import pathlib
import re
import shutil
import subprocess

SAME_HOST = {}  # what processes of one host do by themselves
WIRE = {"VERBENA_LOCAL": "off"}
EVENT = "raw_syscalls:sys_enter"
# Where a tool that counts system calls puts what it says, and how. perf hardly disturbs; strace stops at each call.
COUNTERS = {
    "perf": ("perf stat -x, -e " + EVENT + " -o {} --", re.compile(rf"^(\d+),[^,]*,{EVENT}", re.M)),
    "strace": ("strace -f -c -U calls,name -o {} --", re.compile(r"^\s*(\d+) total$", re.M)),
}


@dataclasses.dataclass(frozen=True)
class Ends:
    """Two places (places.py), and the settings of whoever goes over Verbena."""
    server: object
    client: object
    settings: dict

    def pinned(self, cores):
        """Each with all that it starts on a core of its own."""
        return dataclasses.replace(self, server=_behind(self.server, ["taskset", "-c", str(cores[0])]),
                                   client=_behind(self.client, ["taskset", "-c", str(cores[1])]))

    def counted(self, counter, files):
        """With the system calls of each counted into a file. Before pinned()."""
        places = (_behind(_without_sysfs(place), COUNTERS[counter][0].format(file).split())
                  for place, file in zip((self.server, self.client), files))
        return Ends(*places, self.settings)


def _behind(place, words):
    place.gid_index(4)  # looked up once
    other = copy.copy(place)
    other.prefix = [*place.prefix, *words]
    return other


def _without_sysfs(place):
    """`ip netns exec` mounts another /sys, in which perf does not find its events."""
    other = copy.copy(place)
    if place.prefix[:3] == ["ip", "netns", "exec"]:
        other.prefix = ["nsenter", f"--net=/run/netns/{place.prefix[3]}", *place.prefix[4:]]
    return other


def two_cores():
    """Two of the cores that we may use, of different physical ones if the machine says which are."""
    allowed = sorted(os.sched_getaffinity(0))
    first = allowed[0]
    others = [core for core in allowed[1:] if str(first) not in _siblings(core)] or allowed[1:] or [first]
    return first, others[0]


def _siblings(core):
    try:
        text = pathlib.Path(f"/sys/devices/system/cpu/cpu{core}/topology/thread_siblings_list").read_text()
    except OSError:
        return set()
    return set(re.findall(r"\d+", text))


def call_counter():
    """The tool to count system calls with, or None."""
    for tool, (command, _) in COUNTERS.items():
        if shutil.which(tool) and subprocess.run([*command.format("/dev/null").split(), "true"], check=False,
                                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0:
            return tool
    return None


def calls_in(counter, text):
    found = COUNTERS[counter][1].search(text)
    return int(found[1]) if found else None
