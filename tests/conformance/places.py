"""Where programs run: network namespaces of our own, so that nothing else on the machine is seen or disturbed.

As root they are made by `ip netns add verbena-...`, or, where nothing may be mounted, held by a sleeping process; as an
ordinary user inside a user namespace (unshare -Urn); where that is forbidden too, only this machine's own loopback is
left. Whatever is made is removed by close()."""

import itertools
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import time

from process import Failure

_worlds = itertools.count()
BROKER_LINGERS = 1.0  # seconds that a broker stays after its last client


class Unavailable(Exception):
    """This machine does not offer what a path needs; the text says what and why."""


class Place:
    """A network namespace with one device of interest, and how to run something in it."""

    def __init__(self, prefix, label, launcher, device, ipv4, ipv6, settings=None):
        self.prefix = prefix
        self.label = label
        self.launcher = launcher
        self.device = device
        self.address = {4: ipv4, 6: ipv6}
        self.settings = settings or {}  # of Verbena, in the environment of whatever runs here
        self._gids = None

    def command(self, arguments, user="root", through_verbena=True):
        """The whole command line. As root, user chooses; an ordinary user stays who he is."""
        command = list(self.prefix)
        if os.geteuid() == 0 and user != "root":
            command += ["setpriv", f"--reuid={user}", "--regid=nogroup", "--clear-groups", "--inh-caps=-all", "--"]
        if through_verbena:
            command += [self.launcher, "run", "--"]
        return command + list(arguments)

    def run(self, *arguments, check=True):
        """A tool, not under test, inside the namespace."""
        return subprocess.run(list(self.prefix) + list(arguments), check=check, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def gid_index(self, version, user="root"):
        """Index in the device's GID table of this place's address, as ibv_devinfo -v shows it to this user."""
        if self._gids is None:
            done = subprocess.run(self.command(["ibv_devinfo", "-v", "-d", self.device], user), check=False,
                                  env={**os.environ, **self.settings}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True)
            gids = parse_gids(done.stdout)
            if not gids:
                raise Failure(f"ibv_devinfo -v shows no GID of {self.device}:\n{done.stdout}{done.stderr}")
            self._gids = gids
        wanted = self.address[version]
        for index, gid in self._gids:
            if gid == ("::ffff:" + wanted if version == 4 else wanted):
                return index
        raise Failure(f"{self.device} has no GID for {wanted}: {self._gids}")

    def udp_sockets(self):
        """Sockets on UDP 4791 of the namespace, as lines of /proc/net/udp{,6}."""
        lines = self.run("cat", "/proc/net/udp", "/proc/net/udp6", check=False).stdout.splitlines()
        return [line.strip() for line in lines if re.search(r"^\s*\d+: [0-9A-F]+:12B7 ", line)]


def parse_gids(text):
    """[(index, address)] from ibv_devinfo -v's "GID[  0]:  ::ffff:127.0.0.1, RoCE v2" lines."""
    return [(int(index), gid) for index, gid in re.findall(r"GID\[\s*(\d+)\]:\s+([0-9a-f:.]+)", text)]


WIRE = {"VERBENA_LOCAL": "off"}  # packets, also between processes of one host


class Path:
    """Two places between which a case runs: server and client."""

    def __init__(self, name, server, client, mtu):
        self.name = name
        self.server = server
        self.client = client
        self.mtu = mtu  # largest RoCE path MTU that the interface carries


class World:
    """All paths of a run. Paths that this machine cannot offer are in `unavailable`, with the reason."""

    def __init__(self, launcher, settings=None):
        """settings: of Verbena, for whatever runs in a place of this world."""
        self.launcher = launcher
        self.settings = settings or {}
        self.paths = {}
        self.unavailable = {}
        self.namespaces = []
        self._holders = []
        self._tag = f"verbena-{os.getpid()}-{next(_worlds)}"
        self._kind = self._choose()

    def open(self, name):
        """The path of that name, one of matrix.PATHS. Made at first use. vb_lo and one_host are by shared memory."""
        if name not in self.paths and name not in self.unavailable:
            try:
                self.paths[name] = self._make_path(name)
            except Unavailable as reason:
                self.unavailable[name] = str(reason)
        return self.paths.get(name)

    def fresh_namespace(self, label):
        """A namespace with loopback up, for a test that wants one alone."""
        return self._loopback_of(self._make_namespace(label), label)

    def own_loopback(self, label):
        """A path inside a fresh namespace, so that its broker is one test's alone."""
        place = self.fresh_namespace(label)
        return Path("vb_lo", place, place, 4096)

    def machine(self, label):
        """(interface, loopback): two places in one namespace that has a pair of interfaces beside loopback, as a machine
        has. In the second vb_lo is offered too, by name."""
        first, _ = self._two_interfaces(label)
        return first, self._loopback_of(first.prefix, label + "-lo", {"VERBENA_DEVICES": "vbt0,vbt1,lo"})

    def expect_nothing_left(self, path):
        found = leftovers([path.server], self.holder_pids())
        if found:
            raise Failure("left behind:\n" + "\n".join(found))

    def holder_pids(self):
        return {holder.pid for holder in self._holders}

    def veth(self, label, mtu, prepare=None):
        return self._make_veth(label, mtu, prepare)

    def close(self):
        for name in self.namespaces:
            subprocess.run(["ip", "netns", "delete", name], stderr=subprocess.DEVNULL, check=False)
        self.namespaces.clear()
        for holder in self._holders:
            holder.kill()
            holder.wait()
        self._holders.clear()

    # -------------------------------------------------------------------------------------------------- making

    def _choose(self):
        kind = self._kind_to_be_had()
        if kind == "none":  # vb_lo stands beside the machine's other devices and is there by name alone
            os.environ.setdefault("VERBENA_DEVICES", "lo")
        return kind

    def _kind_to_be_had(self):
        if not shutil.which("ip"):
            return "none"
        if os.geteuid() == 0:
            if self._named_namespaces_work():
                return "named"
            flags = "-n"
        else:
            flags = "-Urn"
        probe = subprocess.run(["unshare", flags, "true"], stderr=subprocess.DEVNULL, check=False)
        return "held" if probe.returncode == 0 else "none"

    def _named_namespaces_work(self):
        """`ip netns exec` mounts a /sys: a container or chroot may let us make a namespace and not do that."""
        name = self._tag + "-probe"
        commands = [["ip", "netns", "add", name], ["ip", "netns", "exec", name, "true"], ["ip", "netns", "delete", name]]
        return not any([subprocess.run(command, stderr=subprocess.DEVNULL, check=False).returncode
                        for command in commands])

    def _make_namespace(self, label):
        if self._kind == "named":
            name = f"{self._tag}-{len(self.namespaces)}-{label}"
            done = subprocess.run(["ip", "netns", "add", name], stderr=subprocess.PIPE, text=True, check=False)
            if done.returncode:
                raise Unavailable(f"ip netns add: {done.stderr.strip()}")
            self.namespaces.append(name)
            prefix = ["ip", "netns", "exec", name]
        elif self._kind == "held":
            prefix = self._hold_namespace()
        else:
            raise Unavailable("network namespaces are not to be had (unshare is refused)")
        subprocess.run(prefix + ["ip", "link", "set", "lo", "up"], check=True)
        return prefix

    def _hold_namespace(self):
        """A namespace kept by a sleeping process; an ordinary user's are in one user namespace of all of this run."""
        as_user = ["-U", "--preserve-credentials"] if os.geteuid() != 0 else []
        if as_user and not self._holders:
            holder = subprocess.Popen(["unshare", "-Urn", "sleep", "infinity"])
        else:
            enter = ["nsenter", "-t", str(self._holders[0].pid)] + as_user if as_user else []
            holder = subprocess.Popen(enter + ["unshare", "-n", "sleep", "infinity"])
        self._holders.append(holder)
        own = os.readlink("/proc/self/ns/net")
        deadline = time.monotonic() + 5
        while os.readlink(f"/proc/{holder.pid}/ns/net") == own or _program(holder.pid) != "sleep":
            if time.monotonic() > deadline or holder.poll() is not None:
                raise Unavailable("unshare did not make a namespace")
            time.sleep(0.01)
        return ["nsenter", "-t", str(holder.pid), "-n"] + as_user

    def _make_path(self, name):
        if name.startswith("vb_lo"):
            return self._make_loopback(name, WIRE if name == "vb_lo_wire" else None)
        if name == "one_host":
            return Path(name, *self._two_interfaces(name), 1024)
        return self._make_veth(name, int(name.removeprefix("veth")))

    def _make_loopback(self, name, settings):
        try:
            prefix = self._make_namespace("lo")
        except Unavailable:
            prefix = []
        place = self._loopback_of(prefix, name, settings)
        return Path(name, place, place, 4096)

    def _loopback_of(self, prefix, label, settings=None):
        return Place(prefix, label, self.launcher, "vb_lo", "127.0.0.1", "::1", {**self.settings, **(settings or {})})

    def _two_interfaces(self, label):
        """Two places in one namespace, an interface each."""
        prefix = self._make_namespace(label)
        subprocess.run(prefix + "ip link add vbt0 type veth peer name vbt1".split(), check=True)
        found = []
        for interface, ipv4, ipv6 in (("vbt0", "10.79.0.1", "fd79::1"), ("vbt1", "10.80.0.1", "fd80::1")):
            for line in (f"addr add {ipv4}/24 dev {interface}", f"addr add {ipv6}/64 dev {interface} nodad",
                         f"link set {interface} up"):
                subprocess.run(prefix + ["ip", *line.split()], check=True)
            found.append(Place(prefix, label, self.launcher, "vb_" + interface, ipv4, ipv6, self.settings))
        return found

    def _lay_cable(self, first, second, label, mtu, interfaces, network):
        """From the first to the second, which is the namespace that was made last."""
        subprocess.run(first + ["ip", "link", "add", interfaces[0], "type", "veth", "peer", "name", interfaces[1]], check=True)
        target = self.namespaces[-1] if self._kind == "named" else str(self._holders[-1].pid)
        subprocess.run(first + ["ip", "link", "set", interfaces[1], "netns", target], check=True)
        places = []
        for prefix, interface, number in ((first, interfaces[0], 1), (second, interfaces[1], 2)):
            ipv4, ipv6 = f"10.{network}.0.{number}", f"fd{network}::{number}"
            for line in (f"addr add {ipv4}/24 dev {interface}", f"addr add {ipv6}/64 dev {interface} nodad",
                         f"link set {interface} mtu {mtu} up"):
                subprocess.run(prefix + ["ip", *line.split()], check=True)
            places.append(Place(prefix, f"{label}-{number}", self.launcher, "vb_" + interface, ipv4, ipv6,
                                self.settings))
        return places

    def _make_veth(self, label, mtu, prepare=None):
        first = self._make_namespace(label + "a")
        second = self._make_namespace(label + "b")
        places = self._lay_cable(first, second, label, mtu, ("vbt0", "vbt1"), 79)
        if prepare:
            for place in places:
                prepare(place)
        return Path(label, places[0], places[1], 1024 if mtu < 2048 + 60 else 4096)


def second_cable(world, path, mtu):
    """Another cable between the two places of the path that was made last: a Path of the same places."""
    places = world._lay_cable(path.server.prefix, path.client.prefix, path.name, mtu, ("vbs0", "vbs1"), 81)
    return Path(path.name + "-second", *places, path.mtu)


def launcher_for_everyone(build, scratch):
    """The launcher to use: build/verbena, or, where nobody cannot reach it, a copy installed into scratch."""
    launcher = str(pathlib.Path(build).resolve() / "verbena")
    if os.geteuid() != 0:
        return launcher
    probe = subprocess.run(["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups", "--", "test", "-x",
                            os.path.realpath(launcher)], check=False)
    if probe.returncode == 0:
        return launcher
    subprocess.run(["meson", "install", "-C", build, "--no-rebuild", "--quiet", "--destdir", scratch], check=True,
                   stdout=subprocess.DEVNULL)
    found = list(pathlib.Path(scratch).glob("**/bin/verbena"))
    if not found:
        raise Unavailable("nobody cannot execute the build's launcher, and meson install installs none")
    return str(found[0])


def leftovers(places, ignore=(), seconds=4.0):
    """What is still there, once a broker has had its second to leave: [] when nothing is. In a namespace of ours no
    process may be left at all; on the machine's own loopback no verbena-broker."""
    deadline = time.monotonic() + BROKER_LINGERS + seconds
    own = os.readlink("/proc/self/ns/net")
    namespaces = {place.run("readlink", "/proc/self/ns/net").stdout.strip(): place for place in places}
    while True:
        found = []
        for place in places:
            found += [f"UDP socket on 4791 in {place.label}: {line}" for line in place.udp_sockets()]
        for pid, namespace, command in _processes():
            if namespace in namespaces and pid not in ignore:
                if namespace != own or os.path.basename(command.split(" ")[0]) == "verbena-broker":
                    found.append(f"process {pid} in {namespaces[namespace].label}: {command}")
        if not found or time.monotonic() > deadline:
            return found
        time.sleep(0.1)


def processes(place):
    """(process id, command line) of whatever runs in a place's namespace."""
    wanted = place.run("readlink", "/proc/self/ns/net", check=False).stdout.strip()
    return [(pid, command) for pid, namespace, command in _processes() if namespace == wanted]


def brokers(place):
    """Process ids of the verbena-broker processes of a place's namespace, oldest (the parent) first."""
    return named(place, "verbena-broker")


def named(place, name):
    """Process ids of what calls itself so in a place's namespace, oldest first. A broker's forwarders have its command
    line, and a name of their own."""
    return sorted((pid for pid, _ in processes(place) if _program(pid) == name), key=_started)


def _processes():
    """(pid, network namespace, command line) of every process that may be looked at."""
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                namespace = os.readlink(entry / "ns/net")
                command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
            except OSError:
                continue
            if command:
                yield int(entry.name), namespace, command


def _started(pid):
    try:
        return int(pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])
    except OSError:
        return 0


def _program(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""
