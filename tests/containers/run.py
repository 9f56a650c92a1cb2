#!/usr/bin/env python3
"""Containers: builds the image of the Containerfile, and runs the pods of examples/kubernetes/ as containers of podman that share
nothing but a bridge. Needs root, the Debian archive and PyPI; some minutes. All of it is made in a directory, and in
namespaces of its own, which end with it."""

import argparse
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
TREE = pathlib.Path(__file__).resolve().parents[2]
sys.path += [str(TREE / "tests/portability"), str(TREE / "tests/wheels")]

import packages
import root

try:
    import pods
except ImportError:     # no python3-yaml
    pods = None

TOOLS = ("mmdebstrap", "buildah", "podman", "crun", "ip", "unshare")
VENV = "/venv"
SECONDS = 120

# podman keeps its state in /run and /dev/shm; it wants cgroups of version 2; and names must be resolved while images are made.
ENTER = """set -e
mount --make-rprivate /
names=$(readlink -f /etc/resolv.conf)
cp "$names" "$1/resolv.conf"
mount -t tmpfs tmpfs /run
mount -t tmpfs tmpfs /dev/shm
[ -e "$names" ] || { mkdir -p "$(dirname "$names")"; cp "$1/resolv.conf" "$names"; }
umount -R /sys/fs/cgroup 2>/dev/null || :
mount -t cgroup2 cgroup2 /sys/fs/cgroup
shift
exec "$@"
"""


class Images:
    """Images in a store of their own."""

    def __init__(self, folder):
        self.folder = folder
        (folder / "containers.conf").write_text("[containers]\ndefault_sysctls=[]\n")
        os.environ["CONTAINERS_CONF"] = str(folder / "containers.conf")
        store = ["--root", folder / "store", "--runroot", folder / "run"]
        self.podman = ["podman", *store, "--tmpdir", folder / "tmp", "--runtime=crun", "--cgroup-manager=cgroupfs"]
        self._buildah = ["buildah", *store]

    def has(self, name):
        return subprocess.run([*self.podman, "image", "exists", name], check=False).returncode == 0

    def from_root(self, name, suite, wanted, then=None):
        """An image that is a clean Debian with some packages, and what a command adds."""
        made = root.Root(suite, self.folder / "root", self.folder / "log")
        try:
            made.make(wanted)
            if then:
                then(made)
            with subprocess.Popen(["tar", "-C", made.path, "-c", "."], stdout=subprocess.PIPE) as tar:
                self._run([*self.podman, "import", "-", name], stdin=tar.stdout)
            if tar.returncode:
                raise root.Broken(f"tar ended with {tar.returncode}")
        finally:
            made.remove()

    def from_containerfile(self, name):
        self._run([*self._buildah, "build", "--isolation=chroot", "--network=host", "--tag", name, TREE])

    def _run(self, command, stdin=subprocess.DEVNULL):
        done = subprocess.run(command, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                              check=False)
        with (self.folder / "log").open("a") as log:
            log.write(f"\n==== {' '.join(map(str, command))}\n{done.stdout}")
        if done.returncode:
            raise root.Broken(f"{' '.join(map(str, command[:1] + command[-3:]))}: status {done.returncode}: {done.stdout[-2000:]}")


def add_nixl(made):
    """NIXL from PyPI, as tests/wheels pins it, and the program of examples/programs."""
    pip = f"{VENV}/bin/pip install --quiet --disable-pip-version-check --only-binary=:all:"
    authorities = os.environ.get("PIP_CERT")    # of this machine, whose proxy may sign for PyPI
    if authorities:
        shutil.copy(authorities, made.path / "authorities.pem")
        pip += " --cert /authorities.pem"
    wheels = [f"{pip} {'--no-deps' * wheel.alone} {wheel.name}=={wheel.version}" for wheel in packages.GROUPS["nixl"]]
    made.run(" && ".join([f"python3 -m venv {VENV}", *wheels]), network=True)
    (made.path / "programs").mkdir()
    for name in ("nixl_peer.py", "exchange.py"):
        shutil.copy(TREE / "examples/programs" / name, made.path / "programs")


# Each image, and what makes it: the first stands for the Containerfile's base, which is not fetched.
IMAGES = {
    "docker.io/library/debian:12": lambda images, name: images.from_root(name, "bookworm", ("ca-certificates",)),
    "registry.example/verbena": Images.from_containerfile,
    "registry.example/perftest": lambda images, name: images.from_root(name, "trixie", ("perftest", "ibverbs-providers")),
    "registry.example/nixl":
        lambda images, name: images.from_root(name, "bookworm", ("python3-venv", "ca-certificates", "ibverbs-providers"), add_nixl),
}


def run_pods(images, path):
    """Two pods of a file, the server and its client; what they said of their peers."""
    (server, client), service = pods.read(path)
    folder, bridge = images.folder / path.stem, f"{path.stem}-bridge"
    shutil.rmtree(folder, ignore_errors=True)      # of an earlier run with --directory
    server, client = (pods.Pod(images.podman, pod, number, folder) for number, pod in enumerate((server, client), 1))
    subprocess.run(["ip", "netns", "add", bridge], check=True)
    for line in ("link add bridge type bridge", "link set bridge up"):
        subprocess.run(["ip", "-n", bridge, *line.split()], check=True)
    for pod in (server, client):
        pod.join(bridge)
        pod.prepare()
    server.start({})
    said = try_client(client, {service: server.address})
    server.finish(SECONDS)
    print("\n".join(f"    {line}" for line in said.strip().splitlines()[-8:]), flush=True)
    for pod in (server, client):
        judge(pod)
    for name in (server.name, client.name, bridge):
        subprocess.run(["ip", "netns", "delete", name], check=True)


def try_client(client, hosts):
    """A client that comes before its server ends with an error, and is started again, as restartPolicy says."""
    deadline = time.monotonic() + SECONDS
    while True:
        client.start(hosts)
        try:
            return client.finish(SECONDS)
        except pods.Failed:
            if time.monotonic() > deadline:
                raise
            time.sleep(1)


def judge(pod):
    peers = [peer for peer in pod.peers() if peer["path"] != "itself"]      # an agent of NIXL also talks to itself
    moved = sum(peer["sent"] + peer["received"] for peer in peers)
    print(f"  {pod.name}: {moved} bytes, by {', '.join(sorted({peer['path'] for peer in peers})) or 'nothing'}", flush=True)
    if not moved or any(peer["path"] != "wire" for peer in peers):
        raise pods.Failed(f"{pod.name}: not all bytes went over the wire: {peers}")


def attempt(what, function, *arguments):
    print(f"{what} ...", flush=True)
    began = time.monotonic()
    try:
        function(*arguments)
    except Exception as error:
        print(f"  failed: {error}", flush=True)
        return False
    print(f"  passed after {time.monotonic() - began:.0f} s", flush=True)
    return True


def run_all(folder):
    images = Images(folder)
    passed, failed, skipped = 0, 0, 0
    for name, make in IMAGES.items():
        if images.has(name):
            continue
        is_made = attempt(f"image {name}", make, images, name)
        passed, failed = passed + is_made, failed + (not is_made)
    for path in sorted((TREE / "examples/kubernetes").glob("*.yaml")):
        missing = [container["image"] for pod in pods.read(path)[0]
                   for container in pod["spec"]["initContainers"] + pod["spec"]["containers"] if not images.has(container["image"])]
        if missing:
            print(f"{path.name}: skipped: no image {missing[0]}", flush=True)
            skipped += 1
            continue
        is_good = attempt(f"pods of {path.name}", run_pods, images, path)
        passed, failed = passed + is_good, failed + (not is_good)
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0


def why_not():
    """Why there are no containers here."""
    if os.geteuid() != 0:
        return "needs root"
    missing = [tool for tool in TOOLS if not shutil.which(tool)]
    if missing:
        return f"there is no {', '.join(missing)} (scripts/install-deps containers)"
    if not pods:
        return "there is no python3-yaml (scripts/install-deps containers)"
    with tempfile.TemporaryDirectory() as folder:
        tried = subprocess.run([*root.ALONE, "sh", "-c", ENTER, "sh", folder, "unshare", "--user", "--net", "true"],
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    return f"no namespaces: {tried.stdout.strip()}" if tried.returncode else None


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--directory", metavar="DIR", help="where images are made, and left (default: a temporary directory, removed)")
    parser.add_argument("--inside", metavar="DIR", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        return run_all(pathlib.Path(options.inside))
    reason = why_not()
    if reason:
        print(f"containers: skipped: {reason}", file=sys.stderr)
        return 77
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    folder = pathlib.Path(options.directory or tempfile.mkdtemp(prefix="verbena-containers-")).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    inside = subprocess.Popen([*root.ALONE, "--mount-proc", "sh", "-c", ENTER, "sh", folder, sys.executable, __file__,
                               "--inside", folder])
    try:
        return inside.wait()
    except KeyboardInterrupt:
        return 130
    finally:
        inside.kill()
        inside.wait()
        if not options.directory:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
