"""What NCCL, UCX, Open MPI and monitoring read of a device outside the verbs, read in their ways, as one line of JSON.
Started with a device's name on Verbena; knows nothing of it."""

import glob
import json
import os
import subprocess
import sys

device = sys.argv[1]
base = f"/sys/class/infiniband/{device}"


def read(path):
    with open(path, encoding="ascii") as file:
        return file.read().rstrip("\n")


def read_at(folder, name):
    """By a descriptor of the directory, as hwloc does."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        file = os.open(name, os.O_RDONLY, dir_fd=fd)
        with os.fdopen(file) as stream:
            return stream.read().rstrip("\n")
    finally:
        os.close(fd)


port = f"{base}/ports/1"
print(json.dumps({
    "listed": device in os.listdir("/sys/class/infiniband"),
    "globbed": glob.glob(f"/sys/class/infiniband/{device}/ports/*"),
    "scanned": sorted(entry.name for entry in os.scandir(f"{port}/gid_attrs/types")),
    "realpath": os.path.realpath(base),
    "is_link": os.path.islink(base),
    "device_exists": os.path.isdir(f"{base}/device"),
    "net": os.listdir(f"{base}/device/net"),
    "node_guid": read(f"{base}/node_guid"),
    "fw_ver": read(f"{base}/fw_ver"),
    "state": read(f"{port}/state"),
    "link_layer": read_at(port, "link_layer"),
    "rate": read(f"{port}/rate"),
    "gids": [read(f"{port}/gids/{index}") for index in sorted(os.listdir(f"{port}/gids"), key=int)],
    "types": {index: read(f"{port}/gid_attrs/types/{index}") for index in os.listdir(f"{port}/gid_attrs/types")},
    "ndevs": {index: read_at(f"{port}/gid_attrs/ndevs", index) for index in os.listdir(f"{port}/gid_attrs/ndevs")},
    "uverbs": os.listdir("/dev/infiniband"),
    "numa_node": read(f"{base}/device/numa_node") if os.path.exists(f"{base}/device/numa_node") else None,
    "child": subprocess.run(["cat", f"{port}/pkeys/0"], stdout=subprocess.PIPE, text=True, check=True).stdout.strip(),
}))
