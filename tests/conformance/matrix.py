"""What is run: the product of programs, options, sizes, MTUs, paths, IP versions and users, and its pairwise selection.

A Case is one row. What may be combined is decided here and nowhere else (UD messages fit one packet, atomics are 8
bytes, an option exists only where its program has it); what a case types and expects is programs.py."""

import collections

import pairwise

Case = collections.namedtuple("Case", "kind option size mtu path ip user")

# And the largest RoCE path MTU that each carries. The first and third are one host, where bytes go by shared memory.
PATHS = {"vb_lo": 4096, "vb_lo_wire": 4096, "one_host": 1024, "veth1500": 1024, "veth9000": 4096}
VERSIONS = (4, 6)
USERS = ("root", "nobody")
ALL_MTUS = (256, 512, 1024, 2048, 4096)
FULL_MTUS = (256, 1024)  # besides the default, in the full product
STREAM_SIZES = (1, 2048, 65536, 1 << 20)
DATAGRAM_SIZES = (1, 200, 1024, 4096)

# kind -> option texts. A kind is a program, with its transport where the program has a choice.
TOOLS = ("ibv_devices", "ibv_devinfo", "ibv_asyncwatch")
PINGPONG = {
    "ibv_rc_pingpong": ("", "-e", "-c", "-e -c", "-N", "-N -e", "-t", "-r 1"),
    "ibv_uc_pingpong": ("", "-e", "-c", "-e -c"),
    "ibv_ud_pingpong": ("", "-e", "-c", "-e -c"),
    "ibv_srq_pingpong": ("", "-e", "-c", "-e -c", "-q 1", "-q 64"),
    "ibv_xsrq_pingpong": ("", "-e", "-c 3"),
}
_BW = ("", "-b", "-q 2", "-q 16", "-q 64", "-l 8", "-b -q 8 -l 4", "-Q 1", "-t 2", "-D 1", "-a")
_LAT = ("", "-D 1", "-a")
_WR = "wr"  # a part id at which perftest takes ibv_wr_* instead of ibv_post_send; so does every option with -I
PERFTEST = {
    "ib_write_bw RC": _BW + ("-I 64", "-I 64 --use_old_post_send", _WR),
    "ib_write_bw UC": _BW + ("-I 64", _WR),
    "ib_read_bw RC": _BW + ("-e", "-o 1", _WR),
    # With -e -b, perftest before 23.07 takes no more completions per event than one QP has receives. If the other QPs'
    # were there by then, no event follows for them: it waits for ever. An SRQ has that many receives for all QPs.
    "ib_send_bw RC": _BW + ("-e", "-I 64", "-I 64 --use_old_post_send", "--use-srq", "-e -b -q 4 --use-srq",
                            "-I 64 -l 8 -q 2", _WR),
    "ib_send_bw UC": _BW + ("-e", "-I 64", _WR),
    "ib_send_bw UD": _BW + ("-e", "-I 64", "--use-srq", _WR),
    "ib_atomic_bw RC": ("", "-b", "-q 2", "-q 16", "-q 64", "-e", "-l 8", "-A CMP_AND_SWAP", "-o 1", "-D 1", _WR),
    "ib_write_bw XRC": ("", "-q 16"),
    "ib_send_bw XRC": ("", "-b -e"),
    "ib_read_bw XRC": ("",),
    "ib_atomic_bw XRC": ("",),
    "ib_write_lat RC": _LAT + ("-I 64", _WR),
    "ib_write_lat UC": _LAT + ("-I 64",),
    "ib_read_lat RC": _LAT + ("-e", _WR),
    "ib_send_lat RC": _LAT + ("-e", "-I 64", "--use-srq", _WR),
    "ib_send_lat UC": _LAT + ("-e", "-I 64"),
    "ib_send_lat UD": _LAT + ("-e", "-I 64", "--use-srq"),
    "ib_atomic_lat RC": ("", "-e", "-A CMP_AND_SWAP", "-D 1", _WR),
}


def product(mtus=FULL_MTUS):
    """Every valid case. mtus are the explicit path MTUs; 0, the program's default, is always there."""
    for path, largest in PATHS.items():
        for user in USERS:
            for tool in TOOLS:
                yield Case(tool, "", 0, 0, path, 0, user)
            for kind, options in {**PINGPONG, **PERFTEST}.items():
                for option in options:
                    for size, mtu in sizes_and_mtus(kind, option, largest, mtus):
                        for ip in VERSIONS:
                            yield Case(kind, option, size, mtu, path, ip, user)


def sizes_and_mtus(kind, option, largest, mtus):
    """(size, mtu) that go with a kind and option. Size 0: the program has none to choose. MTU 0: its default."""
    mtus = (0,) + tuple(mtu for mtu in mtus if mtu <= largest)
    if kind == "ibv_xsrq_pingpong":  # its default is 2048, whatever the port carries
        mtus = tuple(mtu for mtu in mtus if mtu or largest >= 2048)
    if kind == "ibv_ud_pingpong":  # it has no -m: the port's MTU is the limit
        return [(size, 0) for size in DATAGRAM_SIZES if size <= largest]
    if option == "-a" or kind.startswith("ib_atomic"):
        return [(0, mtu) for mtu in mtus]
    if is_datagram(kind):
        return [(size, mtu) for mtu in mtus for size in DATAGRAM_SIZES if size <= (mtu or largest)]
    return [(size, mtu) for mtu in mtus for size in STREAM_SIZES]


def is_datagram(kind):
    return kind.endswith(" UD") or kind == "ibv_ud_pingpong"


def selection(seed=1):
    """The pairwise selection of CI, with every MTU."""
    return pairwise.choose(product(ALL_MTUS), seed)


def name(case):
    parts = [case.kind, case.option, f"size={case.size}" if case.size else "", f"mtu={case.mtu}" if case.mtu else "",
             case.path, f"ipv{case.ip}" if case.ip else "", case.user]
    return " ".join(part for part in parts if part)
