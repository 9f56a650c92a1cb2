"""What is done in each clean root, in this order. A check returns one line of what it saw; it fails by raising Broken."""

import collections
import json
import re
import textwrap

import service
from root import Broken

Check = collections.namedtuple("Check", "name title function")
CHECKS = []

CHILDREN = {"children__see_it_too", "working_directory__stays_where_a_borrowing_child_moves",
            "working_directory__is_childrens_too"}
# What qemu-user cannot do, by test; of a cmocka program these cases alone.
NOT_EMULATED = {
    "port/udp": {"receive__overflow_is_counted"},       # SO_RXQ_OVFL
    "port/ethernet": None,                              # options of packet sockets
    "host/live": None, "host/asleep": None, "host/connections": None, "host/crowded": None,
    "cli/commands": None,                               # they run the broker
    "preload/hooks_root": CHILDREN,                     # start programs of the machine's own processor
    "preload/hooks_nobody": CHILDREN,
    "verbs/releases": None,                             # starts programs that it has compiled
    "verbs/regions": None,                              # madvise(MADV_POPULATE_*), mincore; what follows finds a leak
}
SIM_SEEDS = 5    # emulated, 100,000 packets take some seconds


def check(name, title):
    def add(function):
        CHECKS.append(Check(name, title, function))
        return function
    return add


def last_count(output):
    found = re.findall(r"\d+ passed, \d+ failed(?:, \d+ skipped)?", output)
    return found[-1] if found else ""


@check("root", "a clean root by mmdebstrap")
def make_root(context):
    context.root.make(mirror=context.mirror)
    context.root.put_tree(context.tree)
    return "Debian " + context.root.run("cat /etc/debian_version").strip()


@check("packages", "what it wants is installed")
def install_packages(context):
    context.root.run("scripts/install-deps build check demo deb", network=True)
    packages = "gcc libc6 libibverbs1 perftest ucx-utils libfabric1 openmpi-bin"
    found = context.root.run(f"dpkg-query -W -f='${{Package}} ${{Version}}, ' {packages}")
    return re.sub(r"(-[\w.+~]*)?,", ",", found).strip(", ")


@check("build", "make, no warning; a release build, without asserts, neither")
def build(context):
    context.root.run("scripts/build build --werror")
    context.root.run("scripts/build build-release --werror -Dtests=false -Db_ndebug=true && rm -rf build-release")
    return context.root.run("gcc --version | head -n 1").strip()


@check("compilers", "other compilers, no warning")
def build_by_others(context):
    done = []
    for compiler in ("clang", "gcc-13"):
        if context.root.run(f"command -v {compiler} || apt-cache -q=2 show {compiler} 2>/dev/null | head -n 1 || true"):
            context.root.run(f"command -v {compiler} >/dev/null || apt-get install -y --no-install-recommends {compiler}",
                             network=True)
            context.root.run(f"CC={compiler} scripts/build build-{compiler} --werror && rm -rf build-{compiler}")
            done.append(context.root.run(f"{compiler} --version | head -n 1").strip())
    return "; ".join(done)


@check("unit", "unit tests and packet scripts")
def run_unit(context):
    context.root.run("meson test -C build --no-rebuild --suite unit --suite script --timeout-multiplier 3", seconds=1800)
    return meson_count(context)


def meson_records(context, build_directory="build"):
    log = context.root.path / "src/verbena" / build_directory / "meson-logs/testlog.json"
    return [json.loads(line) for line in log.read_text(errors="replace").splitlines() if line.strip()]


def meson_count(context):
    results = collections.Counter(record["result"] for record in meson_records(context))
    return ", ".join(f"{count} {result.lower()}" for result, count in results.items())


@check("demo", "make demo")
def demo(context):
    output = context.root.run("SKIP_DEPS=1 make demo")
    rows = re.findall(r"^(ib\w+) +\w+ \d+ KiB +Gb/s +([\d.]+) +([\d.]+) +([\d.]+)$", output, re.M)
    if not rows:
        raise Broken("printed no table")
    return "; ".join(f"{program} {rate} Gb/s, {wire} over the wire, TCP beside it {tcp}" for program, rate, wire, tcp in rows)


@check("conformance", "the conformance selection: perftest, UCX, libfabric, Open MPI")
def conformance(context):
    report = context.root.path / "src/verbena/conformance.json"
    failure = ""
    try:
        context.root.run("python3 tests/conformance/run.py --build build --second-try --json conformance.json", seconds=3600)
    except Broken as error:
        failure = str(error)
    if not report.exists():
        raise Broken(failure)
    cases = json.loads(report.read_text())["cases"]
    groups = collections.OrderedDict((name, collections.Counter()) for name in ("perftest", "UCX", "libfabric", "Open MPI", "others"))
    for case in cases:
        groups[group_of(case["name"])][case["result"]] += 1
    told = "; ".join(f"{name} {count['passed']} of {sum(count.values())}" for name, count in groups.items())
    failed = [case["name"] for case in cases if case["result"] == "failed"]
    if failed or failure:
        raise Broken(f"{told}\nfailed: {'; '.join(failed[:12])} ({len(failed)} in all)\n{failure if not failed else ''}")
    return told


def group_of(name):
    for group, sign in (("Open MPI", "MPI"), ("UCX", "ucx"), ("libfabric", "libfabric"), ("libfabric", "fi_"),
                        ("perftest", "ib_")):
        if sign.lower() in name.lower():
            return group
    return "others"


@check("rdma-core", "rdma-core's own tests")
def rdma_core(context):
    return last_count(context.root.run("python3 tests/rdma_core/run.py --build build --second-try", seconds=3600))


@check("deb", "packages: built, lintian, installed, used, purged without a trace")
def packages(context):
    context.root.run("scripts/deb")
    before = files_of(context)
    context.root.run("apt-get install -y --no-install-recommends ./build-deb/verbena_*.deb ./build-deb/verbena-dev_*.deb",
                     network=True)
    used = context.root.run("verbena run -- ibv_devinfo -d vb_lo | grep -E 'hca_id|state' && test -n \"$(pkg-config --variable=verbsdir verbena)\"")
    context.root.run("apt-get purge -y verbena verbena-dev")
    left = sorted(files_of(context) ^ before)
    if left:
        raise Broken("purging left or took: " + " ".join(left))
    return " ".join(used.split()[:4]) + "; nothing left"


def files_of(context):
    """Paths in the places where packages put things; not the logs and lists that dpkg and apt keep of every package."""
    found = context.root.run("find / -xdev \\( -path /src -o -path /proc -o -path /sys -o -path /tmp -o -path /root -o -path /dev"
                             " -o -path /var/cache -o -path /var/lib/apt -o -path /var/log -o -path /run"
                             " -o -path /var/lib/dpkg \\) -prune -o -print")
    return set(found.splitlines())


@check("service", "root's broker as systemd's service, in a virtual machine")
def run_service(context):
    built = context.root.path / "src/verbena/build-deb"
    if not any(built.glob("verbena_*.deb")):    # asked for alone
        context.root.run("scripts/deb")
    package, = built.glob("verbena_*.deb")
    machine = context.other_root("service", context.root.suite)
    try:
        return service.run(machine, package, context.mirror)
    finally:
        machine.remove()


@check("directory", "the container recipe: one directory, copied into a root that has rdma-core's programs and nothing else")
def copy_directory(context):
    """The commands of the Containerfile on this release; its directory then used as docs/ways.md says, on every release."""
    builder = context.other_root("container", context.root.suite)
    builder.make(packages=("ca-certificates",), mirror=context.mirror)
    builder.put_tree(context.tree)
    recipe = (context.tree / "Containerfile").read_text()
    builder.run("\n".join(["set -e", "ln -s /src/verbena /verbena", *re.findall(r"^RUN (.*)$", recipe, re.M)]), network=True)
    seen = []
    for suite in context.suites:
        plain = context.other_root(f"plain-{suite}", suite)
        plain.make(packages=("ibverbs-utils", "perftest", "iproute2"), mirror=context.mirror)
        (plain.path / "opt").mkdir(exist_ok=True)
        context.copy(builder.path / "opt/verbena", plain.path / "opt/verbena")
        said = plain.run("export LD_LIBRARY_PATH=/opt/verbena/lib/verbena VERBENA_STATS=1\n"
                         "export LD_PRELOAD=/opt/verbena/lib/verbena/libverbena-preload.so\n"
                         "ib_write_bw -d vb_lo -F >/dev/null 2>&1 & sleep 3\n"
                         "timeout 60 ib_write_bw -d vb_lo -F 127.0.0.1 2>&1; wait")
        if "tx_bytes" not in said:
            raise Broken(f"built on {context.root.suite}, on {suite}: {said[-1500:]}")
        plain.remove()
        seen.append(suite)
    builder.remove()
    return f"built on {context.root.suite}, ib_write_bw ran on " + " and ".join(seen)


@check("action", "the steps of action.yml as a shell runs them, without and with a wheel; then a program as the next step")
def run_action(context):
    job = context.other_root("action", context.root.suite)
    job.make(packages=("ca-certificates", "make", "ibverbs-utils", "perftest", "python3-venv"), mirror=context.mirror)
    job.put_tree(context.tree)
    steps = [textwrap.dedent(step) for step in re.findall(r"^      run: \|\n((?:        .*\n)+)", (context.tree / "action.yml").read_text(), re.M)]
    if not steps:
        raise Broken("action.yml has no step")
    following = """PATH=$(cat /tmp/path):$PATH
        verbena run -- ib_write_bw -F >/dev/null & sleep 3
        verbena run --stats-json /tmp/stats.json -- ib_write_bw -F 127.0.0.1; wait; verbena --version; cat /tmp/stats.json"""
    seen = []
    for given in ("", "WHEEL=$(echo /src/verbena/build-wheel/*.whl)"):
        if given:
            job.run("scripts/install-deps build wheel && make wheel SKIP_DEPS=1", network=True)
        job.run("\n".join(["set -e; rm -rf /tmp/path /opt/verbena", "export GITHUB_ACTION_PATH=/src/verbena GITHUB_PATH=/tmp/path",
                           "export PREFIX=/opt/verbena", f"export {given}" if given else "", *steps]), network=True)
        said = job.run("set -e\n" + following)
        if '"path":"shared memory"' not in said:
            raise Broken(f"{given or 'built'}: {said[-1500:]}")
        seen.append(f"{'from a wheel' if given else 'built'}: {re.search('^verbena [0-9.]+$', said, re.M)[0]}")
    job.remove()
    return "; ".join(seen)


@check("autopkgtest", "the test that examples/autopkgtest adds to a package of RDMA programs, on perftest's source")
def run_autopkgtest(context):
    if not any((context.root.path / "src/verbena/build-deb").glob("verbena_*.deb")):    # asked for alone
        context.root.run("scripts/deb")
    context.root.run("rm -rf /tmp/packages; mkdir -p /tmp/packages && cp build-deb/verbena_*.deb /tmp/packages", network=False)
    return context.root.run(f"""set -e
        echo 'deb-src {context.mirror} {context.root.suite} main' >/etc/apt/sources.list.d/source.list
        apt-get -qq update && apt-get install -y -qq --no-install-recommends autopkgtest dpkg-dev >/dev/null
        cd /tmp/packages && apt-get -qq source --download-only perftest && dpkg-source -x perftest_*.dsc perftest
        mkdir -p perftest/debian/tests && cp /src/verbena/examples/autopkgtest/* perftest/debian/tests
        autopkgtest --no-built-binaries ./verbena_*.deb perftest/ -- null >log 2>&1 || {{ status=$?; cat log; exit $status; }}
        grep '^on-verbena' log | tail -n 1; rm /etc/apt/sources.list.d/source.list""", network=True).splitlines()[-1]


@check("aarch64", "cross-built for 64-bit ARM; unit tests, scripts, simulation under qemu-user")
def aarch64(context):
    root = context.other_root("aarch64", context.root.suite)
    foreign = [f"{name}:arm64" for name in ("libibverbs-dev", "librdmacm-dev", "libyaml-dev", "zlib1g-dev", "libcmocka-dev",
                                           "libpcap-dev")]
    root.make(packages=["gcc", "libc6-dev", "meson", "ninja-build", "pkg-config", "python3", "iproute2", "procps",
                        "gcc-aarch64-linux-gnu", "libc6-dev-arm64-cross", "qemu-user-static", *foreign],
              architectures="amd64,arm64", mirror=context.mirror)
    root.put_tree(context.tree)
    context = context._replace(root=root)
    root.run("meson setup build --cross-file tests/portability/aarch64.ini --werror && ninja -C build", seconds=3600)
    try:
        root.run("meson test -C build --no-rebuild --suite unit --suite script --timeout-multiplier 10", seconds=3600)
    except Broken:
        pass    # read below
    passed, bad, said, emulation = 0, [], [], 0
    for record in meson_records(context):
        name = record["name"].rsplit(" / ", 1)[-1]    # "project:suite / name" with several suites
        cases = set(re.findall(r"\[  (?:FAILED|ERROR )  \] (\w+__\w+)", record.get("stdout", "") + record.get("stderr", "")))
        if record["result"] == "OK":
            passed += 1
        elif name in NOT_EMULATED and (NOT_EMULATED[name] is None or cases <= NOT_EMULATED[name]):
            emulation += 1
        else:
            bad.append(name)
            told = record.get("stdout", "") + record.get("stderr", "")
            first = re.search(r"ERROR|Traceback|error:", told)
            said.append(f"{name}:\n{told[max(0, (first.start() if first else 0) - 500):][:1500]}")
    simulated = root.run(f"qemu-aarch64-static build/tests/sim/sim --seeds 1..{SIM_SEEDS}"
                         f" && qemu-aarch64-static build/tests/sim/cm_sim --seeds 1..{SIM_SEEDS}", seconds=3600)
    told = f"{passed} tests passed, {len(bad)} failed, {emulation} want what qemu-user has not; " \
           f"{len(re.findall(r'packets, ', simulated))} seeds"
    root.remove()
    if bad:
        raise Broken(f"{told}\nfailed: {' '.join(bad)}\n" + "\n".join(said))
    return told


@check("musl", "built with musl-gcc, two programs of musl's talk")
def musl(context):
    context.root.run("apt-get install -y --no-install-recommends musl-tools", network=True)
    said = context.root.run("tests/portability/musl.sh build-musl")
    return f"{len(re.findall(r'^done ', said, re.M))} of 4 operations, every byte verified"
