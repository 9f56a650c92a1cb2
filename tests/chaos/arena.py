"""Where chaos happens: two hosts joined by a cable, each a network namespace with another interface and other users
beside, as real machines have them; and what may not be left when all is over."""

import os
import pathlib
import signal
import time

import places
from process import Failure, Process

MTU = 1500
LEAVES_SECONDS = 6  # for brokers that nobody needs any more
DAEMON_SECONDS = 5  # for root's broker to serve


class Arena:
    """hosts[0] and hosts[1] are places (places.py) with an IPv4 address; root's brokers on both where is_shared."""

    def __init__(self, context, label, is_shared=False):
        self.context = context
        self.world = places.World(context.launcher)
        self.is_shared = is_shared
        self.daemons = [None, None]
        self.ended_daemons = []
        self._shared_memory = set(os.listdir("/dev/shm")) if os.path.isdir("/dev/shm") else set()
        try:
            path = self.world.veth(label, MTU, prepare=_furnish)
            self.hosts = (path.server, path.client)
            for number, host in enumerate(self.hosts):
                host.run("ip", "route", "add", "default", "via", self.hosts[1 - number].address[4])
            if is_shared:
                for number in (0, 1):
                    self.start_daemon(number)
        except BaseException:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def address(self, number):
        return self.hosts[number].address[4]

    # ------------------------------------------------------------------------------------------------------ brokers

    def start_daemon(self, number):
        """root's broker on this host, as a machine's service manager would start it."""
        host = self.hosts[number]
        self.daemons[number] = Process(host, [host.launcher, "broker"], through_verbena=False,
                                       name=f"verbena broker at host {'ab'[number]}")
        deadline = time.monotonic() + DAEMON_SECONDS
        while not host.udp_sockets():
            if time.monotonic() > deadline or self.daemons[number].status is not None:
                raise Failure("root's broker did not start\n" + self.daemons[number].evidence(with_stacks=True))
            time.sleep(0.02)

    def brokers(self, number):
        """(parent, worker) of a host's broker, as far as they are there."""
        return places.brokers(self.hosts[number])

    def forwarders(self, number):
        return places.named(self.hosts[number], "verbena-forward")

    def wait_whole(self, number, seconds):
        """Until both processes of the host's broker are there, or time is up; their process ids."""
        deadline = time.monotonic() + seconds
        while len(self.brokers(number)) != 2 and time.monotonic() < deadline:
            time.sleep(0.02)
        return self.brokers(number)

    def end_daemons(self):
        """Whatever took the place of root's broker ends with it."""
        for number in (0, 1):
            for pid in self.brokers(number) if self.daemons[number] else []:
                send_signal(pid, signal.SIGCONT)
                send_signal(pid, signal.SIGTERM)

    # ---------------------------------------------------------------------------------------------------- afterwards

    def expect_nothing_left(self):
        """No process, socket or abstract name of Verbena's in either host, nothing in shared memory or TMPDIR."""
        self.end_daemons()
        found = places.leftovers(self.hosts, self.world.holder_pids(), LEAVES_SECONDS)
        for host in self.hosts:
            names = host.run("cat", "/proc/net/unix", check=False).stdout.splitlines()
            found += [f"abstract name in {host.label}: {line.split()[-1]}" for line in names if "@verbena" in line]
        if os.path.isdir("/dev/shm"):
            found += [f"/dev/shm/{name}" for name in set(os.listdir("/dev/shm")) - self._shared_memory
                      if "verbena" in name or name.startswith("vb")]
        found += [str(path) for path in pathlib.Path(self.context.temporary).iterdir()]
        if found:
            raise Failure("left behind:\n" + "\n".join(found))

    def close(self):
        """Ends what a failure left, so that nothing is left of the test itself."""
        for daemon in self.daemons:
            if daemon:
                daemon.kill()
        for host in getattr(self, "hosts", ()):
            for pid, _ in places.processes(host):
                if pid not in self.world.holder_pids():
                    send_signal(pid, signal.SIGKILL)
        self.world.close()


def _furnish(host):
    """Another interface beside; and replies to forged sources leave the host, as on a machine with a gateway."""
    number = host.address[4].rsplit(".", 1)[1]
    for line in ("link add vbx0 type veth peer name vbx1", f"addr add 10.80.{number}.1/24 dev vbx0",
                 "link set vbx0 up", "link set vbx1 up"):
        host.run("ip", *line.split())
    for name in ("all", "default", host.device.removeprefix("vb_")):
        host.run("sh", "-c", f"echo 0 >/proc/sys/net/ipv4/conf/{name}/rp_filter", check=False)


def send_signal(pid, number):
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass

