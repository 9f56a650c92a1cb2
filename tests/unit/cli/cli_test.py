#!/usr/bin/env python3
"""cli_test BUILD: what the command `verbena` prints and how it ends. Prints "N passed, N failed, N skipped"."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import traceback

BUILD = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "build").resolve()
VERBENA = str(BUILD / "src/cli/verbena")
COMMANDS = ("run", "devices", "doctor", "broker", "sim", "version", "help")


class Skip(Exception):
    pass


def verbena(*arguments, cwd=None, **environment):
    """The finished process; VERBENA_* of the caller are taken out, environment is put in."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("VERBENA_", "LD_"))}
    return subprocess.run([VERBENA, *arguments], env={**clean, **environment}, cwd=cwd, text=True, timeout=60,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def in_own_network(script):
    """A finished shell with a network namespace of its own, lo up, for what wants a broker; $V is the command."""
    may = ["unshare", "--net"] if os.geteuid() == 0 else ["unshare", "--net", "--map-root-user"]
    if subprocess.run([*may, "true"], stderr=subprocess.DEVNULL).returncode:
        raise Skip("no network namespace may be made here")
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("VERBENA_", "LD_"))}
    return subprocess.run([*may, "sh", "-c", f"ip link set lo up; {script}"], env={**clean, "V": VERBENA}, text=True,
                          timeout=60, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def equal(seen, wanted):
    if seen != wanted:
        raise AssertionError(f"wanted {wanted!r}, saw {seen!r}")


def contains(text, part):
    if part not in text:
        raise AssertionError(f"wanted {part!r} in {text!r}")


def help__every_command_explains_itself():
    for command in COMMANDS:
        for done in (verbena(command, "--help"), verbena("help", command)):
            equal(done.returncode, 0)
            contains(done.stdout, f"usage: verbena {command}")


def main__unknown_command_suggests_a_known_one():
    done = verbena("devises")
    equal(done.returncode, 2)
    contains(done.stderr, "did you mean 'devices'")


def main__no_command_is_wrong_usage():
    equal(verbena().returncode, 2)


def main__an_unknown_option_says_where_the_help_is():
    for command in ("run", "devices", "doctor"):
        contains(verbena(command, "--sideways").stderr, f"See: verbena {command} --help\n")


def run__exit_status_passes_through():
    equal(verbena("run", "--", "sh", "-c", "exit 7").returncode, 7)


def run__death_by_signal_passes_through():
    equal(verbena("run", "--", "sh", "-c", "kill -9 $$").returncode, -9)


# Opens the first device, if there is an argument "open"; then ends in the way that the first argument names.
ENDS = """
import ctypes, os, signal, sys, time
verbs = ctypes.CDLL("libibverbs.so.1")
verbs.ibv_get_device_list.restype = verbs.ibv_open_device.restype = ctypes.c_void_p
devices = ctypes.cast(verbs.ibv_get_device_list(None), ctypes.POINTER(ctypes.c_void_p))
if "open" in sys.argv:
    assert verbs.ibv_open_device(ctypes.c_void_p(devices[0]))
if sys.argv[1] == "exec":
    os.execvp("true", ["true"])
if sys.argv[1] == "_exit":
    os._exit(0)
if sys.argv[1] == "close":
    os.closerange(3, 1000)
elif sys.argv[1] != "exit":
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.kill(os.getpid(), getattr(signal, sys.argv[1]))
"""
WAYS_TO_END = ("exit", "_exit", "exec", "close", "SIGINT", "SIGTERM", "SIGABRT", "SIGKILL", "SIGSEGV")


def run__stats_are_printed_once_however_the_program_ends():
    for how in WAYS_TO_END:
        for opens, said in (("open", "wire: nothing was sent or received"), ("", "wire: no device was opened")):
            # cat ends when all have ended who may write to its pipe, and nothing else holds up the shell.
            done = in_own_network(f"{{ VERBENA_DEVICES=lo $V run --stats -- python3 -c '{ENDS}' {how} {opens}; }} 2>&1 | cat")
            if done.stdout.count(said) != 1 or done.stdout.count("wire:") != 1:
                raise AssertionError(f"{how} {opens}: wanted {said!r} once, saw {done.stdout!r} {done.stderr!r}")


def run__stats_json_is_one_line_however_the_program_ends():
    for how in WAYS_TO_END:
        for opens in ("open", ""):
            with tempfile.TemporaryDirectory() as directory:
                done = in_own_network(f"{{ cd {directory}; VERBENA_DEVICES=lo $V run --stats-json %p.json -- python3 -c '{ENDS}' {how} "
                                      f"{opens}; }} 2>&1 | cat")
                files = list(pathlib.Path(directory).iterdir())
                said = [json.loads(line) for file in files for line in file.read_text().splitlines()]
                if len(said) != 1 or said[0]["opened"] != bool(opens) or f"{said[0]['pid']}.json" != files[0].name:
                    raise AssertionError(f"{how} {opens}: saw {files} {said} {done.stdout!r}")
                if opens:
                    equal((said[0]["peers"], said[0]["lane"]["tx_packets"]), ([], 0))
                equal("wire:" in done.stdout, False)


def run__stats_json_counts_what_went_which_way():
    for local, path in (("auto", "shared memory"), ("off", "wire")):
        with tempfile.TemporaryDirectory() as directory:
            done = in_own_network(f"export VERBENA_LOCAL={local}; cd {directory}; $V run -- ibv_rc_pingpong -g 0 >/dev/null & sleep 1; "
                                  f"cd {directory}; VERBENA_LOCAL={local} $V run --stats-json out -- ibv_rc_pingpong -g 0 127.0.0.1; wait")
            equal(done.returncode, 0)
            (said,) = map(json.loads, (pathlib.Path(directory) / "out").read_text().splitlines())
            (peer,) = said["peers"]
            equal((said["program"], peer["path"], peer["sent"], peer["received"]), ("ibv_rc_pingpong", path, 4096000, 4096000))
            equal(said["lane"]["tx_bytes"], 4096000)


def run__stats_json_says_which_faults_struck():
    with tempfile.TemporaryDirectory() as directory:
        done = in_own_network(f"cd {directory}; $V run --faults verb:ibv_alloc_pd:nth=1:ENOMEM,verb:ibv_reg_mr:nth=9:EIO --stats-json out -- "
                              "ibv_rc_pingpong -g 0")
        equal(done.returncode, 1)
        (said,) = map(json.loads, (pathlib.Path(directory) / "out").read_text().splitlines())
        equal(said["faults"], [{"fault": "verb ibv_alloc_pd", "struck": 1, "calls": 1},
                               {"fault": "verb ibv_reg_mr", "struck": 0, "calls": 0}])


def run__stats_json_that_cannot_be_written_is_said():
    done = in_own_network("VERBENA_DEVICES=lo $V run --stats-json /nowhere/x -- ibv_devinfo -l")
    equal(done.returncode, 0)
    contains(done.stderr, "VERBENA_STATS_JSON=/nowhere/x: No such file or directory")


def run__stats_change_neither_the_status_nor_the_process_nor_its_children():
    waits = ENDS + "try: os.wait()\nexcept ChildProcessError: print('childless')"
    done = in_own_network(f'''export VERBENA_DEVICES=lo
        $V run --stats -- sh -c 'echo $$; exec python3 -c "$0" SIGKILL open' '{ENDS}' &
        pid=$!; wait $pid; echo status $? of $pid
        $V run --stats -- python3 -c "{waits.replace(chr(34), chr(92) + chr(34))}" exit open''')
    lines = done.stdout.split("\n")
    equal(lines[1], f"status 137 of {lines[0]}")
    equal(lines[2], "childless")


def run__stats_are_printed_when_a_terminal_ends_the_program():
    in_terminal = """
import os, pty, sys, time
pid, terminal = pty.fork()
if pid == 0:
    os.execvp(sys.argv[1], sys.argv[1:])
said = b""
try:
    while True:
        said += os.read(terminal, 4096)
        if b"ready" in said:
            os.write(terminal, b"\\x03")
            said = said.replace(b"ready", b"")
except OSError:
    pass
print(os.waitpid(pid, 0)[1], said.decode())
"""
    waits = ENDS.split("if sys.argv[1]")[0] + "signal.signal(2, signal.SIG_DFL)\nprint('ready', flush=True)\ntime.sleep(20)"
    waits = waits.replace("'", '"')
    done = in_own_network(f"VERBENA_DEVICES=lo python3 -c '{in_terminal}' $V run --stats -- python3 -c '{waits}' x open")
    contains(done.stdout, "2 ")
    equal(done.stdout.count("wire: nothing was sent or received"), 1)


def run__stats_let_a_constructor_look_at_devices():
    if not shutil.which("cc"):
        raise Skip("no C compiler")
    with tempfile.TemporaryDirectory() as directory:
        source = pathlib.Path(directory, "plugin.c")
        source.write_text("""void *ibv_get_device_list(int *count);
            __attribute__((constructor)) static void look(void) { ibv_get_device_list(0); }""")
        subprocess.run(["cc", "-shared", "-fPIC", "-o", f"{directory}/plugin.so", source, f"-L{BUILD}/src/verbs", "-libverbs"],
                       check=True)
        loads = f'import ctypes; ctypes.CDLL("{directory}/plugin.so")'
        done = in_own_network(f"timeout 10 $V run --stats -- python3 -c '{loads}'; echo ended by $?")
    equal(done.stdout, "ended by 0\n")
    contains(done.stderr, "wire: no device was opened")


def run__stats_of_a_program_are_printed_where_the_watcher_is_missing():
    with tempfile.TemporaryDirectory() as libexec:
        done = in_own_network(f"""cp {BUILD}/src/broker/verbena-broker {libexec}
            for i in $(seq 30); do VERBENA_LIBEXEC={libexec} $V run --stats -- ibv_devices >/dev/null || echo ended by $?; done""")
    equal(done.stdout, "")
    equal(done.stderr.count("wire: no device was opened"), 30)


def run__options_after_the_program_are_the_programs():
    equal(verbena("run", "echo", "--stats").stdout, "--stats\n")


def run__puts_our_library_in_front():
    show = "echo $LD_LIBRARY_PATH"
    done = verbena("run", "--no-preload", "--", "sh", "-c", show, LD_LIBRARY_PATH="/elsewhere")
    equal(done.stdout, f"{BUILD}/src/rdmacm:/elsewhere\n")


def run__rsockets_are_asked_for():
    done = verbena("run", "--rsockets", "--no-preload", "--", "sh", "-c", "echo $LD_PRELOAD", LD_PRELOAD="/nowhere.so")
    equal(done.stdout, f"{BUILD}/src/rspreload/librspreload.so:/nowhere.so\n")


def run__programs_load_our_library():
    done = verbena("run", "--", "ldd", shutil.which("ibv_devices") or "/usr/bin/ibv_devices")
    if "not" in done.stderr:
        raise Skip("ibv_devices is not installed")
    contains(done.stdout, f"{BUILD}/src/rdmacm/libibverbs.so.1")


def run__programs_load_our_connection_manager():
    done = verbena("run", "--", "ldd", shutil.which("rping") or "/usr/bin/rping")
    if "not" in done.stderr:
        raise Skip("rping is not installed")
    contains(done.stdout, f"{BUILD}/src/rdmacm/librdmacm.so.1")
    contains(done.stdout, f"{BUILD}/src/rdmacm/libibverbs.so.1")


def run__stands_before_a_copy_of_another_name():
    compiler = shutil.which("cc")
    if not compiler:
        raise Skip("no compiler")
    copy = "libibverbs-1de1263b.so.1"
    with tempfile.TemporaryDirectory() as place:
        pathlib.Path(place, "map").write_text("IBVERBS_1.1 { ibv_wc_status_str; };")
        for text, options in (("const char *ibv_wc_status_str(int s) { return s ? 0 : \"the copy's\"; }",
                               ("-shared", "-fPIC", f"-Wl,-soname,{copy}", "-Wl,--version-script=map", "-o", copy)),
                              ("#include <stdio.h>\nconst char *ibv_wc_status_str(int);\n"
                               "int main(void) { return puts(ibv_wc_status_str(0)) < 0; }",
                               ("-x", "none", copy, f"-Wl,-rpath,{place}", "-o", "program"))):
            subprocess.run([compiler, "-xc", "-", *options], input=text, text=True, cwd=place, check=True)
        equal(subprocess.run([f"{place}/program"], stdout=subprocess.PIPE, text=True).stdout, "the copy's\n")
        equal(verbena("run", "--", f"{place}/program").stdout, "success\n")


def run__capture_lies_where_the_user_stands():
    with tempfile.TemporaryDirectory() as place:
        done = verbena("run", "--pcap", "x.pcap", "--", "sh", "-c", "echo $VERBENA_PCAP", cwd=place)
        equal(done.stdout, f"{os.path.realpath(place)}/x.pcap\n")


def run__the_end_of_options_is_no_value():
    with tempfile.TemporaryDirectory() as place:
        for option, name in (("--pcap", "--pcap"), ("--faults", "--faults"), ("--pca", "--pcap")):
            done = verbena("run", option, "--", "echo", "ran", cwd=place)
            equal((done.returncode, done.stdout), (125, ""))
            contains(done.stderr, f"{name} takes a value")
        equal(verbena("run", "--pcap", "a--", "--", "echo", "ran", cwd=place).stdout, "ran\n")


def run__missing_program_is_127():
    done = verbena("run", "--", "no-such-program")
    equal(done.returncode, 127)
    contains(done.stderr, "not found on PATH")


def run__file_that_is_no_program_is_126():
    equal(verbena("run", "--", "/etc/passwd").returncode, 126)


def run__no_program_is_125():
    equal(verbena("run").returncode, 125)


def run__setuid_program_is_refused():
    if os.geteuid() != 0:
        program = shutil.which("su")
        if not program:
            raise Skip("no setuid program to try")
        done = verbena("run", "--", program)
    else:
        with tempfile.TemporaryDirectory() as place:
            program = shutil.copy("/bin/true", place)
            os.chown(program, 65534, -1)
            os.chmod(program, 0o4755)
            done = verbena("run", "--", program)
    equal(done.returncode, 126)
    contains(done.stderr, "turn the order around")


def run__static_program_runs_with_a_warning():
    compiler = shutil.which("cc")
    with tempfile.TemporaryDirectory() as place:
        made = compiler and subprocess.run([compiler, "-static", "-xc", "-", "-o", f"{place}/static"], text=True,
                                           input="int main(void) { return 3; }", stderr=subprocess.DEVNULL)
        if not made or made.returncode:
            raise Skip("cannot link statically here")
        done = verbena("run", "--", f"{place}/static")
    equal(done.returncode, 3)
    contains(done.stderr, "statically linked")


def run__malformed_setting_is_refused_with_what_is_allowed():
    done = verbena("run", "true", VERBENA_LOG="loud")
    equal(done.returncode, 125)
    contains(done.stderr, "error|warn|info|debug")


def run__unknown_setting_is_refused():
    done = verbena("run", "true", VERBENA_COLOUR="blue")
    equal(done.returncode, 125)
    contains(done.stderr, "VERBENA_COLOUR")


def devices__json_has_what_the_table_has():
    done = verbena("devices", "--json")
    if done.returncode == 1:
        equal(json.loads(done.stdout), [])
        raise Skip("no interface is up with an address")
    table = verbena("devices").stdout.partition("\n\n")[0].splitlines()[1:]
    devices = [device for device in json.loads(done.stdout) if device["offered"]]
    equal(len(table), len(devices))
    for line, device in zip(table, devices):
        for part in (device["name"], device["interface"], str(device["mtu"]), *(f"{gid['index']}:{gid['address']}"
                                                                                for gid in device["gids"])):
            contains(line.split(), part)


# The kernel says somewhat later that it is up.
PAIR = "ip link add there type veth peer name beyond && ip addr add 10.9.0.1/24 dev there && " \
       "ip link set beyond up && ip link set there up && " \
       "for i in $(seq 100); do ip link show there | grep -q 'state UP' && break; sleep 0.05; done"


def devices__loopback_is_not_offered_beside_another():
    done = in_own_network(f"{PAIR} && $V devices && $V run -- ibv_devices; $V devices --json")
    if "vb_there" not in done.stdout:
        raise Skip("no pair of interfaces may be made here")
    table, _, rest = done.stdout.partition("\n\n")
    contains(table, "vb_there")
    equal("vb_lo" in table, False)
    contains(rest, "vb_lo is not offered beside another device")
    contains(rest, "VERBENA_DEVICES=there")
    devices = json.loads(done.stdout[done.stdout.index("["):])
    loopback = devices[-1]
    equal((loopback["name"], loopback["offered"]), ("vb_lo", False))
    contains(loopback["how"], "VERBENA_DEVICES=there")
    contains(loopback["why"], "every host has its addresses")
    named = in_own_network(f"{PAIR} && {loopback['how']} $V devices --links")
    contains(named.stdout, "link vb_lo/1 state ACTIVE physical_state LINK_UP netdev lo netdev_index 1\n")
    contains(named.stdout, "link vb_there/1 state ACTIVE physical_state LINK_UP netdev there netdev_index ")
    contains(in_own_network("$V devices").stdout, "vb_lo")


def doctor__json_agrees_with_the_exit_status():
    done = verbena("doctor", "--json")
    report = json.loads(done.stdout)
    states = {finding["state"] for finding in report["findings"]}
    equal(report["verdict"], "stop" if "stop" in states else "slow" if "slow" in states else "ok")
    equal(done.returncode, 1 if "stop" in states else 0)


def doctor__malformed_setting_is_a_stop():
    done = verbena("doctor", VERBENA_LOG="loud")
    equal(done.returncode, 1)
    contains(done.stdout, "error|warn|info|debug")


def doctor__says_how_processes_of_this_host_talk():
    contains(verbena("doctor").stdout, "same host")
    contains(verbena("doctor").stdout, "shared memory")
    for setting, value in (("LOCAL", "off"), ("PCAP", "/dev/null"), ("FAULTS", "drop=1%")):
        said = verbena("doctor", **{"VERBENA_" + setting: value}).stdout
        contains(said, "over the wire, as between hosts: VERBENA_" + setting)
        contains(said, "unset VERBENA_" + setting)


def doctor__of_a_program_found_by_path_starts_a_broker():
    done = in_own_network("cd / && PATH=$(dirname $V):$PATH VERBENA_DEVICES=lo verbena doctor")
    contains(done.stdout, "free; the broker started for this check leaves by itself")


def doctor__given_settings_are_marked():
    contains(verbena("doctor", VERBENA_PART_ID="77").stdout, "* VERBENA_PART_ID   77")


def doctor__names_that_are_no_device_are_told_apart():
    done = in_own_network("ip link add there type veth peer name beyond && "
                          "VERBENA_DEVICES=lo,eth99,there $V doctor")
    if not done.stdout:
        raise Skip("no pair of interfaces may be made here")
    contains(done.stdout, "slow  devices")
    contains(done.stdout, "VERBENA_DEVICES names eth99: there is no such interface")
    contains(done.stdout, "VERBENA_DEVICES names there: that interface is down")
    equal(done.stderr, "")


def doctor__says_whether_connections_go_over_to_another_interface():
    links = ("for n in 1 2; do ip link add rail$n type veth peer name far$n; ip addr add 10.9.$n.1/24 dev rail$n; "
             "ip link set rail$n up; done; ")
    done = in_own_network(links + "$V doctor; VERBENA_DEVICES=rail1 $V doctor; VERBENA_PATHS=1 $V doctor")
    if "vb_rail1" not in done.stdout:
        raise Skip("no pair of interfaces may be made here")
    contains(done.stdout, "connections go over to another interface when theirs dies: rail1, rail2")
    contains(done.stdout, "none: it takes a second interface")
    contains(done.stdout, "off, by VERBENA_PATHS=1")


def run__programs_say_once_what_devices_are_named_in_vain():
    def lines(wanted):
        done = in_own_network(f"VERBENA_DEVICES={wanted} $V run -- ibv_devinfo")
        if "ibv_devinfo: not found" in done.stderr:
            raise Skip("ibv_devinfo is not installed")
        return [line for line in done.stderr.splitlines() if line.startswith("verbena")]

    equal(lines("lo,vb_lo"), [])
    equal(lines("eth99,lo,eth98"), ["verbena: VERBENA_DEVICES names eth99: there is no such interface",
                                    "verbena: VERBENA_DEVICES names eth98: there is no such interface"])
    equal(lines("eth99"), ["verbena: VERBENA_DEVICES leaves no device: eth99: there is no such interface"])


def doctor__own_address_is_answered_by_verbena():
    done = verbena("doctor", "127.0.0.1")
    if "own port" in done.stdout:
        raise Skip("UDP port 4791 is not to be had here")
    contains(done.stdout, "Verbena (exchange version")
    contains(done.stdout, "open both ways")


def doctor__any_address_is_this_machine():
    for any_address, loopback in (("0.0.0.0", "127.0.0.1"), ("::", "::1")):
        done = verbena("doctor", any_address)
        if "no way to ::1" in done.stdout:
            continue  # without IPv6
        contains(done.stdout, f" to {loopback}\n")
        equal(done.returncode, verbena("doctor", loopback).returncode)


def doctor__link_local_address_wants_its_interface():
    contains(verbena("doctor", "fe80::1").stdout, "fe80::1%eth0")
    lacking = "say through which interface"
    if lacking in verbena("doctor", "fe80::1%lo").stdout:
        raise AssertionError("the interface was given")


def doctor__wrong_usage_is_2():
    for arguments in (("--timeout", "soon"), ("--timeout", "1e9"), ("a", "b"), ("--sideways",)):
        equal(verbena("doctor", *arguments).returncode, 2)


def run__without_proc_says_how_to_get_it():
    may = subprocess.run(["unshare", "--mount", "true"], stderr=subprocess.DEVNULL)
    if os.geteuid() or may.returncode:
        raise Skip("no mount namespace may be made here")
    for what in ("run -- true", "broker", "doctor"):
        script = f"while umount -l /proc 2>/dev/null; do :; done; {VERBENA} {what}"
        done = subprocess.run(["unshare", "--mount", "sh", "-c", script], text=True, timeout=60, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE)
        contains(done.stdout + done.stderr, "mount -t proc proc /proc\n")


def broker__an_unknown_user_is_said_in_one_line():
    done = verbena("broker", "--trust", "nosuchuser")
    equal(done.returncode, 2)
    equal(done.stderr, "verbena-broker: --trust nosuchuser: no such user\n")


def broker__a_malformed_setting_is_said():
    done = verbena("broker", VERBENA_LOG="loud")
    equal(done.returncode, 1)
    contains(done.stderr, "VERBENA_LOG=loud is not understood")


def broker__with_log_info_says_who_comes_and_goes():
    done = in_own_network("VERBENA_LOG=info $V broker & until grep -q verbena-broker[.] /proc/net/unix; do sleep 0.1; done; "
                          "$V doctor >/dev/null; sleep 1; kill $!")
    contains(done.stderr, "has come; 0 others are connected")
    contains(done.stderr, "has left; 0 others are connected")


def broker__a_second_one_says_whose_the_first_is():
    done = in_own_network("$V broker & until grep -q verbena-broker[.] /proc/net/unix; do sleep 0.1; done; "
                          "$V doctor | grep 'held by'; $V broker; echo status $?; kill $!")
    contains(done.stdout, "status 1\n")
    contains(done.stderr, "running already")
    owner = done.stdout.split("broker, ")[1].split("\n")[0]  # as the doctor has it: "pid 12 of root"
    contains(done.stderr, f": {owner}; ")
    contains(done.stderr, "one second after its last client ends")


def main():
    tests = [(name, test) for name, test in globals().items() if "__" in name and name[0] != "_" and callable(test)]
    failed, skipped = 0, 0
    for name, test in tests:
        try:
            test()
        except Skip as why:
            skipped += 1
            print(f"skipped: {name}: {why}")
        except Exception:
            failed += 1
            print(f"FAILED: {name}")
            traceback.print_exc(file=sys.stdout)
    print(f"{len(tests) - failed - skipped} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
