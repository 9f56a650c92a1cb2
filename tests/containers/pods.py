"""The pods of a file of examples/kubernetes/, as containers of podman: each has namespaces, a /dev/shm and volumes of its
own, and a user ID that no image knows. Pods share nothing but a bridge."""

import json
import pathlib
import subprocess

import yaml

USER = "1234567:0"          # any but root, as OpenShift gives out
IDS = 2_000_000             # of each pod's user namespace
NETWORK = "10.9.0"
STATS = "stats.json"


class Failed(Exception):
    """A pod did not do what it should; the text is what it printed."""


def read(path):
    """The pods of a file, the server first, and the name of the service by which the client knows it."""
    objects = list(yaml.safe_load_all(pathlib.Path(path).read_text()))
    service = next(one for one in objects if one["kind"] == "Service")
    pods = [one for one in objects if one["kind"] == "Pod"]
    selected = service["spec"]["selector"].items()
    pods.sort(key=lambda pod: not selected <= pod["metadata"]["labels"].items())
    return pods, service["metadata"]["name"]


class Pod:
    """A pod has the network namespace NAME, and the address NUMBER behind the bridge."""

    def __init__(self, podman, pod, number, folder):
        self._podman, self._spec, self.number = podman, pod["spec"], number
        self.name, self._folder = pod["metadata"]["name"], pathlib.Path(folder)
        self.address = f"{NETWORK}.{number}"
        self._process = None
        for volume in [each["name"] for each in self._spec["volumes"]] + ["out"]:
            self._volume(volume).mkdir(parents=True)
            self._volume(volume).chmod(0o777)       # as an emptyDir is

    def _volume(self, name):
        return self._folder / self.name / name

    def join(self, bridge):
        for line in (f"netns add {self.name}", f"-n {bridge} link add port{self.number} type veth peer name eth0 netns {self.name}",
                     f"-n {bridge} link set port{self.number} master bridge up", f"-n {self.name} link set lo up",
                     f"-n {self.name} addr add {self.address}/24 dev eth0", f"-n {self.name} link set eth0 up"):
            subprocess.run(["ip", *line.split()], check=True)

    def _command(self, container, hosts):
        security = container["securityContext"]
        assert security["capabilities"]["drop"] == ["ALL"] and not security["allowPrivilegeEscalation"]
        first = self.number * IDS
        return [*self._podman, "run", "--rm", "--pull=never", "--cgroups=disabled", "--ipc=private",
                f"--network=ns:/run/netns/{self.name}",
                "--ulimit=nofile=1024:1024", "--ulimit=nproc=1024:1024", "--shm-size=1m", "--cap-drop=all",
                "--security-opt=no-new-privileges", f"--uidmap=0:{first}:{IDS}", f"--gidmap=0:{first}:{IDS}", f"--user={USER}",
                *["--read-only"] * security.get("readOnlyRootFilesystem", False),
                *[f"--add-host={name}:{address}" for name, address in hosts.items()],
                f"--volume={self._volume('out')}:/out", f"--env=VERBENA_STATS_JSON=/out/{STATS}",
                *[f"--env={each['name']}={each['value']}" for each in container.get("env", ())],
                *[f"--volume={self._volume(each['name'])}:{each['mountPath']}" for each in container["volumeMounts"]],
                "--entrypoint=" + json.dumps(container["command"]), container["image"]]

    def prepare(self):
        """Run the init containers, one after the other."""
        for container in self._spec["initContainers"]:
            self._start(container, {})
            self.finish(60)

    def start(self, hosts):
        self._start(self._spec["containers"][0], hosts)

    def _start(self, container, hosts):
        self._process = subprocess.Popen(self._command(container, hosts), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                         stderr=subprocess.STDOUT, text=True, errors="replace")

    def finish(self, seconds):
        """What the container printed."""
        try:
            said = self._process.communicate(timeout=seconds)[0]
        except subprocess.TimeoutExpired:
            self._process.kill()
            raise Failed(f"{self.name} did not end within {seconds} s: {self._process.communicate()[0]}") from None
        if self._process.returncode:
            raise Failed(f"{self.name} ended with {self._process.returncode}: {said}")
        return said

    def peers(self):
        """What the summaries of the pod's processes say of their peers."""
        lines = (self._volume("out") / STATS).read_text().splitlines()
        return [peer for line in lines for peer in json.loads(line).get("peers", ())]
