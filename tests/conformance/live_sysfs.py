"""Live tests: what programs read of a device in /sys and /dev is what they are told through the verbs."""

import ipaddress
import json
import os
import pathlib
import re
import shutil

import peers
import places
import programs
from live import BOTH, PACKETS, live_test
from process import Failure, Process

DATA_TOLERANCE = 0.05  # what perftest exchanges beside its messages, and what it posts before it begins to count
READER = pathlib.Path(__file__).with_name("reader.py")


def read_sysfs(context, place, user):
    """reader.py, where everyone can read it, as this user."""
    program = shutil.copy(READER, context.directory)
    with Process(place, ["/usr/bin/python3", "-B", program, place.device], user, name=f"reader as {user}") as process:
        process.wait_success(20)
    return json.loads(process.stdout)


def read_verbs(place, user):
    with Process(place, ["ibv_devinfo", "-v", "-d", place.device], user) as process:
        process.wait_success(20)
    fields = dict(re.findall(r"^\s*(\w+):\s+(.*\S)", process.stdout, re.M))
    gids = re.findall(r"GID\[\s*(\d+)\]:\s+([0-9a-f:.]+)", process.stdout)
    return fields, {index: ipaddress.ip_address(gid).packed for index, gid in gids}


def read_both(context, place, user):
    """At one time: an address of a new interface may become usable just between the two."""
    verbs = read_verbs(place, user)
    for _ in range(5):
        sysfs, before, verbs = read_sysfs(context, place, user), verbs, read_verbs(place, user)
        if verbs == before:
            break
    return sysfs, verbs


def expect(what, seen, wanted):
    if seen != wanted:
        raise Failure(f"{what}: sysfs says {seen!r}, not {wanted!r}")


def compare(place, sysfs, fields, gids):
    interface = place.device.removeprefix("vb_")
    expect("the class lists the device", sysfs["listed"], True)
    expect("the entry is a link", sysfs["is_link"], True)
    expect("its path", sysfs["realpath"], f"/sys/devices/virtual/infiniband/{place.device}")
    expect("ports", sysfs["globbed"], [f"/sys/class/infiniband/{place.device}/ports/1"])
    expect("node_guid", sysfs["node_guid"], fields["node_guid"])
    expect("fw_ver", sysfs["fw_ver"], fields["fw_ver"])
    expect("state", sysfs["state"], "4: ACTIVE" if "PORT_ACTIVE" in fields["state"] else "1: DOWN")
    expect("link_layer", sysfs["link_layer"], fields["link_layer"])
    expect("device/net", sysfs["net"], [interface])
    expect("a P_Key, by a child", sysfs["child"], "0xffff")
    expect("GIDs of a type", sysfs["scanned"], sorted(gids))
    expect("types", sysfs["types"], {index: "RoCE v2" for index in gids})
    expect("interfaces of GIDs", sysfs["ndevs"], {index: interface for index in gids})
    for index, gid in enumerate(sysfs["gids"]):
        expect(f"GID {index}", bytes.fromhex(gid.replace(":", "")), gids.get(str(index), bytes(16)))
    if f"uverbs_{interface}" not in sysfs["uverbs"]:
        raise Failure(f"no character device of {place.device} among {sysfs['uverbs']}")


@live_test("sysfs says of a device what the verbs say, to root and to an ordinary user")
def sysfs_is_true(context):
    path = context.world.open("veth1500")
    places_of_test = [context.world.fresh_namespace("sys")] + ([path.server] if path else [])
    for place in places_of_test:
        for user in ("root", "nobody"):
            sysfs, verbs = read_both(context, place, user)
            compare(place, sysfs, *verbs)


@live_test("sysfs follows the interface: an address that goes takes its GID with it")
def sysfs_is_fresh(context):
    place = context.world.fresh_namespace("sys")
    before = read_sysfs(context, place, "root")
    place.run("ip", "addr", "add", "192.0.2.77/32", "dev", "lo")
    place.run("ip", "addr", "del", "127.0.0.1/8", "dev", "lo")
    after = read_sysfs(context, place, "root")
    expect("the first GID", before["gids"][0].endswith("7f00:0001"), True)
    expect("the first GID afterwards", after["gids"][0].endswith("c000:024d"), True)


@live_test("sysfs counters that perftest reports are those of its summary", (PACKETS,))
def counters(context):
    place = context.world.fresh_namespace("cnt")
    path = places.Path("vb_lo", place, place, 4096)
    names = ("counters/port_xmit_packets", "hw_counters/sent_pkts", "hw_counters/rcvd_pkts", "hw_counters/out_of_buffer")
    with peers.perftest_pair(path, "ib_write_bw", "-n", 500, "-W", ",".join(names)) as (server, client):
        programs.finish([server, client], 30)
    reported = dict(re.findall(r"^\s*(\S+counters/\S+|counters/\S+)=(\d+)$", client.stdout, re.M))
    stats = client.stats()
    packets = 500 * 8  # of 8,448 bytes, which loopback carries
    least = {"counters/port_xmit_packets": ("tx_packets", packets),
             "hw_counters/sent_pkts": ("port_tx_segments", packets), "hw_counters/rcvd_pkts": ("port_rx_segments", 1)}
    for name, (counter, lower) in least.items():
        if not lower <= int(reported.get(name, -1)) <= stats.get(counter, 0):
            raise Failure(f"{name}={reported.get(name)}, but {counter}={stats.get(counter)}\n{client.evidence()}")
    if reported.get("hw_counters/out_of_buffer") != "0":
        raise Failure(f"out_of_buffer without a receive\n{client.evidence()}")


def expect_data(process, what, counter, size, messages):
    reported = dict(re.findall(r"^\s*(counters/\S+)=(\d+)$", process.stdout, re.M))
    if abs(4 * int(reported.get(counter, 0)) - size * messages) > DATA_TOLERANCE * size * messages:
        raise Failure(f"{what}: {counter}={reported.get(counter)}, by four, is not {size * messages}\n{process.evidence()}")
    return int(reported[counter.replace("data", "packets")])


@live_test("sysfs counts the bytes that perftest moves, by fours, whichever way they go", BOTH)
def data(context):
    place = context.world.fresh_namespace("cnt")
    path = places.Path("vb_lo", place, place, 4096)
    counted = ",".join(f"counters/port_{way}_{what}" for way in ("xmit", "rcv") for what in ("data", "packets"))
    for program, size, messages, *more in (("ib_write_bw", 65536, 500), ("ib_read_bw", 65536, 500), ("ib_send_bw", 65536, 500),
                                           ("ib_send_bw", 64, 5000), ("ib_send_bw", 2048, 5000, "-c", "UD")):
        options = ("-s", size, "-n", messages, *more)
        with peers.perftest_pair(path, program, *options, "-W", counted) as (server, client):
            programs.finish([server, client], 60)
        sender, receiver = (server, client) if program == "ib_read_bw" else (client, server)
        packets = expect_data(sender, f"{program} {options}", "counters/port_xmit_data", size, messages)
        expect_data(receiver, f"{program} {options}", "counters/port_rcv_data", size, messages)
        if program != "ib_read_bw" and packets < messages * (1 - DATA_TOLERANCE):  # local answers are no packets
            raise Failure(f"{program} {options}: {packets} packets for {messages} messages\n{sender.evidence()}")


@live_test("sysfs has no counters in a process that has no device open")
def no_counters(context):
    place = context.world.fresh_namespace("cnt")
    with Process(place, ["ls", f"/sys/class/infiniband/{place.device}/ports/1/hw_counters"]) as process:
        process.wait_success(10)
    expect("counters of nothing", process.stdout, "")


@live_test("sysfs of a machine with an adapter shows ours beside it")
def beside_an_adapter(context):
    if os.geteuid() != 0:
        raise places.Unavailable("needs root, to put another sysfs into a mount namespace")
    place = context.world.fresh_namespace("two")
    script = ("mount -t tmpfs none /sys && mkdir -p /sys/class/infiniband/mlx5_0 && echo 7 > /sys/class/infiniband/mlx5_0/fw_ver"
              " && exec \"$@\"")
    look = "ls -1 /sys/class/infiniband; cat /sys/class/infiniband/mlx5_0/fw_ver /sys/class/infiniband/vb_lo/fw_ver"
    with Process(place, ["unshare", "-m", "sh", "-c", script, "sh", "sh", "-c", look]) as process:
        if process.wait(10) and "propagation" in process.stderr:
            raise places.Unavailable("the root directory is no mount point, as in a chroot: no mounts of a test's own")
        process.wait_success(10)
    expect("the class, and a file of each", process.stdout.split(), ["mlx5_0", "vb_lo", "7", "verbena"])


@live_test("sysfs as a working directory: a shell, ibstatus and ibstat")
def working_directory(context):
    place = context.world.fresh_namespace("shell")
    for shell in ("sh", "bash"):
        script = "cd /sys/class/infiniband && ls && cat */ports/1/gids/0 && cd vb_lo/ports && pwd && cat 1/state; cd /; ls -d sys"
        with Process(place, [shell, "-c", script]) as process:
            process.wait_success(30)
        expect(f"what {shell} sees", process.stdout.splitlines(), [
            "vb_lo", "0000:0000:0000:0000:0000:ffff:7f00:0001", "/sys/class/infiniband/vb_lo/ports", "4: ACTIVE", "sys"])
    for program, line in (("ibstatus", "Infiniband device 'vb_lo' port 1 status:"), ("ibstat", "CA 'vb_lo'")):
        if not shutil.which(program):
            raise places.Unavailable(f"{program} (infiniband-diags) is not installed")
        with Process(place, [program]) as process:
            process.wait_success(30)
        expect(f"the first line of {program}", process.stdout.splitlines()[0], line)
        if not re.search(r"[Ss]tate:\s+(4: ACTIVE|Active)", process.stdout):
            raise Failure(f"the port is not active\n{process.evidence()}")
