"""Where the suites come from: a tree that somebody names, or a source package of Debian's; and how they are built, once."""

import os
import pathlib
import subprocess

import places

MIRROR = "http://deb.debian.org/debian"
RELEASES = ("trixie", "bookworm")  # newest first
KEYS = "/usr/share/keyrings/debian-archive-keyring.gpg"
UCX_PARTS = ("src/ucm", "src/ucs", "src/uct", "src/ucp", "src/tools/perf/lib", "test/gtest")  # in the order of building


class Folder:
    """One suite's folder: apt's own lists in it, the tree, what was built, and a log of each step."""

    def __init__(self, path):
        self.path = pathlib.Path(path).resolve()
        self.path.mkdir(parents=True, exist_ok=True)

    def tree(self, package, named):
        """The tree that `named` is, or the newest that Debian's mirror gives, unpacked once."""
        if named:
            return self._named(named)
        target = self.path / package
        if not target.is_dir():
            self._download(package, target)
        return target

    def _named(self, named):
        tree = pathlib.Path(named).resolve()
        if not (tree / "configure.ac").exists():
            raise places.Unavailable(f"{tree} has no configure.ac: it is not the root of a source tree")
        return tree

    def _download(self, package, target):
        said = ""
        for release in RELEASES:
            try:
                self._apt("update", release)
                self._apt("source", release, "--download-only", package)
                self.step(f"unpack-{package}", ["dpkg-source", "--no-check", "-x", self._newest(package), target])
                return
            except places.Unavailable as reason:
                said += f"\n{release}: {reason}"
        raise places.Unavailable(f"no source package {package} is to be had, and --source names no tree:{said}")

    def _newest(self, package):
        return max(self.path.glob(f"{package}_*.dsc"), key=lambda file: file.stat().st_mtime)

    def _apt(self, command, release, *arguments):
        """apt-get with lists of its own: the machine's are not touched."""
        lists = self.path / "apt" / release
        for folder in (lists / "lists/partial", lists / "cache/archives/partial"):
            folder.mkdir(parents=True, exist_ok=True)
        (lists / "sources.list").write_text(f"deb-src [signed-by={KEYS}] {MIRROR} {release} main\n")
        options = {"Dir::Etc::sourcelist": lists / "sources.list", "Dir::Etc::sourceparts": "/dev/null",
                   "Dir::State::lists": lists / "lists", "Dir::Cache": lists / "cache", "APT::Sandbox::User": ""}
        switches = [part for name, value in options.items() for part in ("-o", f"{name}={value}")]
        self.step(f"apt-{command}-{release}", ["apt-get", *switches, command, *arguments])

    def step(self, name, command, where=None):
        """A step of downloading or building; its output in a log, its end in the error."""
        log = self.path / f"{name}.log"
        with log.open("w") as output:
            done = subprocess.run([str(part) for part in command], cwd=where or self.path, stdin=subprocess.DEVNULL,
                                  stdout=output, stderr=subprocess.STDOUT)
        if done.returncode:
            last = (log.read_text(errors="replace").strip().splitlines() or ["it says nothing"])[-1]
            raise places.Unavailable(f"{command[0]} failed: {last} ({log} has all)")

    def build_ucx(self, tree):
        """UCX with its gtest; the program. The tests are compiled without optimisation: that halves the time."""
        program = tree / "test/gtest/gtest"
        if program.exists():
            return program
        print(f"building UCX in {tree}: half an hour on two cores", flush=True)
        if not (tree / "Makefile").exists():
            if not (tree / "configure").exists():
                self.step("ucx-autogen", ["./autogen.sh"], tree)
            self.step("ucx-configure", ["./configure", "--enable-gtest", "--with-verbs", "--with-rdmacm", "--without-cuda",
                                        "--without-rocm", "--without-java", "--without-go", "--disable-doxygen-doc"], tree)
        for part in UCX_PARTS:
            self._make(f"ucx-{pathlib.Path(part).name}", tree / part, "CFLAGS=-O1 -Wno-error", "CXXFLAGS=-O0 -Wno-error")
        return program

    def build_fabtests(self, tree):
        """fabtests, of a libfabric tree with that libfabric and its verbs provider, else with the machine's; the prefix."""
        prefix = self.path / "installed"
        if (prefix / "bin/runfabtests.sh").exists():
            return prefix
        print(f"building fabtests in {tree}", flush=True)
        if (tree / "fabtests").is_dir():
            self._install("libfabric", tree, prefix, "--enable-verbs=yes", "--enable-rxm=yes", "--disable-psm3", "--disable-opx")
            self._install("fabtests", tree / "fabtests", prefix, f"--with-libfabric={prefix}")
        else:
            self._install("fabtests", tree, prefix)
        return prefix

    def _install(self, name, tree, prefix, *switches):
        if not (tree / "configure").exists():
            self.step(f"{name}-autogen", ["./autogen.sh"], tree)
        self.step(f"{name}-configure", ["./configure", f"--prefix={prefix}", *switches], tree)
        self._make(name, tree, "install")

    def _make(self, name, where, *arguments):
        self.step(f"{name}-make", ["nice", "make", f"-j{len(os.sched_getaffinity(0))}", *arguments], where)
