#!/usr/bin/env python3
"""sanitizers_test BUILD: a program that was built with a sanitizer starts under `verbena run`, also from a shell; its own bug is
found, and nothing of ours is taken for one. The same under valgrind. What is not here is skipped, by name.
Prints "N passed, N failed, N skipped"."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
VERBENA = str(pathlib.Path(sys.argv[1]).resolve() / "src/cli/verbena")
REAL_ROOT = os.geteuid() == 0 and subprocess.run(["unshare", "-n", "true"], stderr=subprocess.DEVNULL).returncode == 0
APART = ["unshare", "-n" if REAL_ROOT else "-rn", "sh", "-c", 'ip link set lo up; exec "$@"', "apart"]
LIBS = ["-g", "-O1", "-pthread", "-lrdmacm", "-libverbs"]
POSTS = 200


def said_by(*command, options=(), **environment):
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("VERBENA_", "LD_", "ASAN", "TSAN"))}
    done = subprocess.run([*APART, VERBENA, "run", *options, "--", *map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, timeout=120, env={**clean, "TSAN_OPTIONS": "atexit_sleep_ms=0", **environment})
    return done.stdout


def expect(said, wanted, unwanted=()):
    for part in wanted:
        if part not in said:
            raise AssertionError(f"wanted {part!r} in:\n{said[:3000]}")
    for part in unwanted:
        if part in said:
            raise AssertionError(f"did not want {part!r} in:\n{said[:3000]}")


def build(directory, source, compiler, sanitizer=None):
    """None: that cannot be built here."""
    program = pathlib.Path(directory) / f"{source}-{compiler}-{sanitizer}"
    flags = [f"-fsanitize={sanitizer}"] if sanitizer else []
    done = subprocess.run([compiler, *flags, "-o", program, HERE / f"{source}.c", *LIBS], stderr=subprocess.DEVNULL)
    return program if done.returncode == 0 else None


def with_sanitizer(directory, compiler, sanitizer):
    """None: it is not here."""
    if not shutil.which(compiler):
        return None
    programs = {source: build(directory, source, compiler, sanitizer) for source in ("pair", "connections", "sockets")}
    return (lambda: programs_run(programs, BUGS[sanitizer])) if all(programs.values()) else None


def programs_run(programs, bugs):
    quiet = (["done"], ["WARNING", "ERROR", "ThreadSanitizer:", "verbena:"])
    for local in ("auto", "off"):
        expect(said_by(programs["pair"], VERBENA_LOCAL=local), *quiet)
        for how in ("fork", "exit"):
            expect(said_by(programs["connections"], how, VERBENA_LOCAL=local), *quiet)
            expect(said_by(programs["sockets"], how, options=["--rsockets"], VERBENA_LOCAL=local), *quiet)
    expect(said_by("sh", "-c", f"{programs['pair']} && echo as well"), ["done", "as well"], quiet[1])
    for source, bug, report in bugs:
        options = ["--rsockets"] if source == "sockets" else []
        expect(said_by(programs[source], bug, options=options), [report, f"{source}.c"], ["libibverbs", "librdmacm"])


LEAK, RACE = "detected memory leaks", "WARNING: ThreadSanitizer: data race"
BUGS = {"address": [("pair", "overflow", "heap-buffer-overflow"), ("pair", "leak", LEAK), ("connections", "leak", LEAK),
                    ("sockets", "leak", LEAK)],
        "thread": [("pair", "race", RACE), ("connections", "race", RACE)],
        "undefined": []}


def under_valgrind(directory):
    pair, connections, sockets = (build(directory, source, "gcc") for source in ("pair", "connections", "sockets"))
    memcheck, quiet = ["valgrind", "--leak-check=full"], (["done", "ERROR SUMMARY: 0 errors"], ["Warning", "unknown", "== Invalid", "ninit"])
    for local in ("auto", "off"):
        expect(said_by(*memcheck, pair, VERBENA_LOCAL=local), *quiet)
    expect(said_by(*memcheck, connections), *quiet)
    expect(said_by(*memcheck, sockets, options=["--rsockets"]), *quiet)
    expect(said_by(*memcheck, pair, "leak"), ["definitely lost", "pair.c"], ["libibverbs"])
    expect(said_by(*memcheck, pair, "overflow"), ["Invalid write", "pair.c"])
    helgrind = ["valgrind", "--tool=helgrind", f"--suppressions={HERE / 'helgrind.supp'}"]
    expect(said_by(*helgrind, sockets, options=["--rsockets"]), ["done", "ERROR SUMMARY: 0 errors"], ["data race"])


def posts_are_ordered(directory):
    program = pathlib.Path(directory) / "pair-calls"
    subprocess.run(["gcc", "-rdynamic", "-o", program, HERE / "pair.c", HERE / "calls.c", *LIBS], check=True)
    expect(said_by(program), ["done", f"releases {POSTS} acquires {POSTS}"])


def main():
    passed, failed, skipped = 0, 0, 0
    with tempfile.TemporaryDirectory(prefix="verbena-sanitizers-") as directory:
        tests = [("posts happen before polls", lambda: posts_are_ordered(directory))]
        for compiler in ("gcc", "clang"):
            for sanitizer in BUGS:
                tests.append((f"{compiler} -fsanitize={sanitizer}", with_sanitizer(directory, compiler, sanitizer)))
        tests.append(("valgrind", shutil.which("valgrind") and (lambda: under_valgrind(directory))))
        for name, test in tests:
            try:
                if not test:
                    skipped += 1
                    print(f"skipped: {name}: it is not here")
                    continue
                test()
                passed += 1
            except (AssertionError, subprocess.SubprocessError) as error:
                failed += 1
                print(f"FAILED: {name}: {error}")
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
