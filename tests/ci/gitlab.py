#!/usr/bin/env python3
"""GitLab: runs a job with the template of examples/ci/ as gitlab-ci-local does it, with a shell in place of the image, twice: the
second time Verbena comes out of the cache. The template installs git, and what a build wants, on this machine. Needs root."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

TREE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TREE / "tests/portability"))

from tree import files_of

TOOLS = ("gitlab-ci-local", "rsync", "git", "bash", "ibv_rc_pingpong")
JOB = """include: [{{ local: verbena.yml }}]
variables: {{ RDMA_SOURCE: "file://{source}" }}
my-rdma-test:
  extends: .verbena
  script:
    - verbena run -- ibv_rc_pingpong -g 0 >server.log & sleep 2; verbena run --stats-json stats.json -- ibv_rc_pingpong -g 0 127.0.0.1; wait
    - grep '"path":"shared memory"' stats.json
"""


def commit(folder, tag):
    who = ("-c", "user.name=test", "-c", "user.email=test@example.invalid")
    for command in (["init", "--quiet"], ["add", "--all"], [*who, "commit", "--quiet", "--message=all"], ["tag", tag],
                    ["remote", "add", "origin", "git@gitlab.com:test/test.git"]):     # it wants to know one, and asks it nothing
        subprocess.run(["git", *command], cwd=folder, check=True)


def make_source(folder, version):
    """This tree as it is, as a repository with the version's tag."""
    folder.mkdir()
    for name in files_of(TREE):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(TREE / name, folder / name, follow_symlinks=False)
    commit(folder, version)


def run_job(folder):
    done = subprocess.run(["gitlab-ci-local", "my-rdma-test"], cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, errors="replace", timeout=1200, check=False)
    if done.returncode:
        print(done.stdout)
    return done


def main():
    missing = [tool for tool in TOOLS if not shutil.which(tool)]
    if missing or os.geteuid() != 0:
        print(f"gitlab: skipped: {'there is no ' + ', '.join(missing) if missing else 'needs root'}"
              " (gitlab-ci-local: npm install -g gitlab-ci-local)", file=sys.stderr)
        return 77
    with tempfile.TemporaryDirectory(prefix="verbena-gitlab-") as name:
        folder = pathlib.Path(name)
        template = (TREE / "examples/ci/gitlab.yml").read_text()
        make_source(folder / "source", re.search(r"RDMA_VERSION: (\S+)", template)[1])
        (folder / "job").mkdir()
        (folder / "job/verbena.yml").write_text(re.sub(r"^  image: .*\n", "", template, flags=re.M))
        (folder / "job/.gitlab-ci.yml").write_text(JOB.format(source=folder / "source"))
        commit(folder / "job", "one")
        for what, sign in (("built", "Verbena runs here"), ("from the cache", "already")):
            done = run_job(folder / "job")
            passed = done.returncode == 0 and sign in done.stdout
            print(f"{what}: {'passed' if passed else 'failed'}", flush=True)
            if not passed:
                return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
