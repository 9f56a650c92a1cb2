"""Root's broker as a service: a virtual machine with Debian's kernel and systemd, in which the package is installed. The
machine has no network but its own; it is emulated where /dev/kvm is of no use."""

import pathlib
import re
import subprocess

from root import Broken

HERE = pathlib.Path(__file__).resolve().parent
PACKAGES = ("linux-image-cloud-amd64", "systemd-sysv", "systemd", "dbus", "udev", "ibverbs-utils", "iproute2", "procps")
UNIT = """[Unit]
Description=The check
After=multi-user.target
[Service]
Type=exec
ExecStart=/usr/local/sbin/verbena-check
StandardOutput=file:/dev/ttyS0
StandardError=file:/dev/ttyS0
"""
BOOT_SECONDS = 900


def run(root, package, mirror):
    """What the guest said, a line a claim."""
    root.make(packages=PACKAGES, mirror=mirror)
    target = root.path / package.name
    target.write_bytes(package.read_bytes())
    root.run(f"dpkg -i /{package.name}")
    target.unlink()
    check = root.path / "usr/local/sbin/verbena-check"
    check.write_bytes((HERE / "service_guest.sh").read_bytes())
    check.chmod(0o755)
    (root.path / "etc/systemd/system/verbena-check.service").write_text(UNIT)
    root.run("systemctl -q enable serial-getty@ttyS0.service 2>/dev/null; systemctl mask -q serial-getty@ttyS0.service;"
             "mkdir -p /etc/systemd/system/multi-user.target.wants;"
             "ln -s ../verbena-check.service /etc/systemd/system/multi-user.target.wants/; echo /dev/vda / ext4 rw 0 1 >/etc/fstab")
    said = boot(root)
    claims = re.findall(r"(right|WRONG): ([^\r\n]+)", said)
    wrong = [claim for verdict, claim in claims if verdict == "WRONG"]
    if wrong or "\ndone" not in said.replace("\r", ""):
        raise Broken(f"in the virtual machine: {'; '.join(wrong) or 'not to the end'}\n" + said[-3000:])
    return f"{len(claims)} claims hold on {(re.findall(r'Linux [0-9.]+[-0-9a-z]*', said) or ['?'])[-1]}, " \
           f"{(re.findall(r'systemd [0-9]+', said) or ['?'])[-1]}"


def boot(root):
    image = root.path.with_suffix(".img")
    kernel, = (root.path / "boot").glob("vmlinuz-*")
    initrd, = (root.path / "boot").glob("initrd.img-*")
    try:
        subprocess.run(["mke2fs", "-q", "-t", "ext4", "-d", root.path, image, "2G"], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        machine = subprocess.run(
            ["qemu-system-x86_64", "-accel", "tcg", "-cpu", "Nehalem", "-m", "1024", "-nodefaults",
             "-display", "none", "-no-reboot", "-serial", "stdio", "-kernel", kernel, "-initrd", initrd, "-append",
             "root=/dev/vda rw console=ttyS0 panic=-1 quiet systemd.show_status=no mitigations=off",
             "-drive", f"file={image},format=raw,if=virtio", "-nic", "none"],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=BOOT_SECONDS)
        return machine.stdout.decode(errors="replace")
    except subprocess.TimeoutExpired as error:
        raise Broken(f"the virtual machine did not end: {(error.stdout or b'').decode(errors='replace')[-3000:]}") from None
    finally:
        image.unlink(missing_ok=True)
