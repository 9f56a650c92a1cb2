#!/usr/bin/env python3
"""examples_test ROOT: the YAML of examples/ and of the action loads, and has what its reader wants: Kubernetes objects that ask for
no privilege and whose programs lie where the init container puts them, a job of GitLab, a composite action of GitHub."""

import copy
import pathlib
import subprocess
import sys
import unittest

try:
    import yaml
except ImportError:
    print("skipped: no python3-yaml")
    sys.exit(77)

DIRECTORY = "/opt/verbena"      # of the image that the Containerfile makes


class Wrong(Exception):
    pass


def expect(is_right, *what):
    if not is_right:
        raise Wrong(": ".join(map(str, what)))


def lint_object(one):
    expect(one.get("apiVersion") == "v1", "apiVersion", one.get("apiVersion"))
    expect(one.get("kind") in ("Service", "Pod"), "kind", one.get("kind"))
    expect(one.get("metadata", {}).get("name"), "no name", one["kind"])
    if one["kind"] == "Pod":
        lint_pod(one["spec"])


def lint_pod(spec):
    for key in ("hostNetwork", "hostPID", "hostIPC"):
        expect(key not in spec, key)
    context = spec.get("securityContext", {})
    expect(context.get("runAsNonRoot") and context.get("runAsUser"), "runs as root")
    volumes = {volume["name"]: volume for volume in spec["volumes"]}
    expect(all("emptyDir" in volume for volume in volumes.values()), "a volume is no emptyDir", volumes)
    expect(spec.get("containers") and spec.get("initContainers"), "no containers")
    for container in spec["initContainers"] + spec["containers"]:
        lint_container(container, volumes)
    lint_copy(spec)


def lint_container(container, volumes):
    for key in ("name", "image", "command"):
        expect(container.get(key), "no", key)
    expect(all(isinstance(word, str) for word in container["command"]), "not text", container["command"])
    security = container.get("securityContext", {})
    expect(security.get("allowPrivilegeEscalation") is False, "allowPrivilegeEscalation", container["name"])
    expect(not security.get("privileged"), "privileged", container["name"])
    expect(security.get("capabilities") == {"drop": ["ALL"]}, "capabilities", container["name"])
    expect(all(mount["name"] in volumes for mount in container["volumeMounts"]), "mounts no volume of the pod", container["name"])


def lint_copy(spec):
    """The init container copies the image's directory into a volume; where the program mounts it, the command lies."""
    for program in spec["containers"]:
        for init in spec["initContainers"]:
            command, target = init["command"][0], init["command"][-1].rstrip("/")
            expect(command == "/bin/cp" and DIRECTORY in init["command"], "copies no", DIRECTORY)
            volume = next((mount["name"] for mount in init["volumeMounts"] if mount["mountPath"] == target), None)
            expect(volume, "copies to no volume", target)
            mounted = next((mount["mountPath"] for mount in program["volumeMounts"] if mount["name"] == volume), None)
            expect(mounted, "does not mount what was copied", program["name"])
            expect(program["command"][0] == f"{mounted}/{pathlib.Path(DIRECTORY).name}/bin/verbena", "is not there",
                   program["command"][0])


def lint_pair(objects):
    """The service selects one pod; the other's command names the service."""
    service, *pods = objects
    expect([one["kind"] for one in objects] == ["Service", "Pod", "Pod"], "no service and two pods")
    expect(service["spec"]["clusterIP"] == "None", "the service is a balancer")
    selector = service["spec"]["selector"].items()
    expect([selector <= pod["metadata"]["labels"].items() for pod in pods] == [True, False], "selector", service["spec"]["selector"])
    expect(service["metadata"]["name"] in pods[1]["spec"]["containers"][0]["command"], "the client does not name the service")


class ExamplesTest(unittest.TestCase):
    root = None

    def load(self, name):
        return list(yaml.safe_load_all((self.root / name).read_text()))

    def test_kubernetes(self):
        files = sorted((self.root / "examples/kubernetes").glob("*.yaml"))
        self.assertTrue(files)
        for path in files:
            with self.subTest(path.name):
                objects = self.load(path)
                for one in objects:
                    lint_object(one)
                lint_pair(objects)

    def test_that_the_images_directory_is_the_containerfiles(self):
        self.assertIn(f"COPY --from=build {DIRECTORY} {DIRECTORY}\n", (self.root / "Containerfile").read_text())

    def test_that_a_fault_is_found(self):
        def program(pod):
            return pod["spec"]["containers"][0]

        def change(function):
            pod = copy.deepcopy(self.load("examples/kubernetes/ib_write_bw.yaml")[1])
            function(pod)
            return pod

        lint_object(change(lambda pod: None))
        faults = {
            "hostNetwork": lambda pod: pod["spec"].update(hostNetwork=True),
            "privileged": lambda pod: program(pod)["securityContext"].update(privileged=True),
            "escalation": lambda pod: program(pod)["securityContext"].pop("allowPrivilegeEscalation"),
            "image": lambda pod: program(pod).pop("image"),
            "number": lambda pod: program(pod)["command"].append(5),
            "mount": lambda pod: program(pod)["volumeMounts"][0].update(mountPath="/elsewhere"),
            "copy": lambda pod: pod["spec"]["initContainers"][0]["command"].append("/elsewhere"),
            "name": lambda pod: pod["metadata"].pop("name"),
        }
        for name, fault in faults.items():
            with self.subTest(name), self.assertRaises(Wrong):
                lint_object(change(fault))

    def test_gitlab(self):
        job = self.load("examples/ci/gitlab.yml")[0][".verbena"]
        self.assertTrue(job["image"])
        self.assertTrue(all(isinstance(line, str) for line in job["before_script"]))
        self.assertTrue(any("scripts/ci-setup" in line for line in job["before_script"]))
        self.assertEqual(job["cache"]["paths"], [".verbena"])
        self.assertTrue(any(".verbena" in line for line in job["before_script"]))
        # verbena run refuses a variable with its prefix that is no setting
        self.assertNotIn("VERBENA_", "".join([*job["variables"], *job["before_script"]]))

    def test_action(self):
        action = self.load("action.yml")[0]
        self.assertTrue(action["name"] and action["description"])
        self.assertEqual(action["runs"]["using"], "composite")
        for step in action["runs"]["steps"]:
            self.assertTrue(step["shell"])
            for value in step["env"].values():
                self.assertIn(value.removeprefix("${{ inputs.").removesuffix(" }}"), action["inputs"])
        self.assertTrue((self.root / "scripts/ci-setup").stat().st_mode & 0o100)

    def test_that_eval_of_a_failed_setup_fails(self):
        done = subprocess.run([self.root / "scripts/ci-setup", "--wheel", "none", "--prefix", "/dev/null/none"], check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.assertNotEqual(done.returncode, 0)
        self.assertEqual(done.stdout, "false\n")


if __name__ == "__main__":
    ExamplesTest.root = pathlib.Path(sys.argv.pop(1))
    unittest.main()
