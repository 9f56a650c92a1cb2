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
APART = ["unshare", "-rn", "sh", "-c", 'ip link set lo up; exec "$@"', "apart"]
LIBS = ["-g", "-O1", "-pthread", "-libverbs"]
POSTS = 200


def said_by(*command, **environment):
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("VERBENA_", "LD_", "ASAN", "TSAN"))}
    done = subprocess.run([*APART, VERBENA, "run", "--", *map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, timeout=120, env={**clean, **environment})
    return done.stdout


def expect(said, wanted, unwanted=()):
    for part in wanted:
        if part not in said:
            raise AssertionError(f"wanted {part!r} in:\n{said[:3000]}")
    for part in unwanted:
        if part in said:
            raise AssertionError(f"did not want {part!r} in:\n{said[:3000]}")


def of_sanitizer(program, bugs):
    for local in ("auto", "off"):
        expect(said_by(program, VERBENA_LOCAL=local), ["done"], ["WARNING", "ERROR", "libibverbs"])
    expect(said_by("sh", "-c", f"{program} && echo as well"), ["done", "as well"], ["WARNING", "ERROR"])
    for bug, report in bugs.items():
        expect(said_by(program, bug), [report, "pair.c"])


def build(directory, compiler, sanitizer):
    """None: that cannot be built here."""
    program = pathlib.Path(directory) / f"pair-{compiler}-{sanitizer}"
    done = subprocess.run([compiler, f"-fsanitize={sanitizer}", "-o", program, HERE / "pair.c", *LIBS], stderr=subprocess.DEVNULL)
    return program if done.returncode == 0 else None


BUGS = {"address": {"overflow": "heap-buffer-overflow", "leak": "detected memory leaks"},
        "thread": {"race": "WARNING: ThreadSanitizer: data race"},
        "undefined": {}}


def under_valgrind(directory):
    program = pathlib.Path(directory) / "pair-plain"
    subprocess.run(["gcc", "-o", program, HERE / "pair.c", *LIBS], check=True)
    for local in ("auto", "off"):
        expect(said_by("valgrind", "--leak-check=full", program, VERBENA_LOCAL=local), ["done", "ERROR SUMMARY: 0 errors"],
               ["Warning", "unknown"])
    expect(said_by("valgrind", "--leak-check=full", program, "leak"), ["definitely lost", "pair.c"], ["libibverbs"])
    expect(said_by("valgrind", "--leak-check=full", program, "overflow"), ["Invalid write", "pair.c"])


def posts_are_ordered(directory):
    program = pathlib.Path(directory) / "pair-calls"
    subprocess.run(["gcc", "-rdynamic", "-o", program, HERE / "pair.c", HERE / "calls.c", *LIBS], check=True)
    expect(said_by(program), ["done", f"releases {POSTS} acquires {POSTS}"])


def main():
    passed, failed, skipped = 0, 0, 0
    with tempfile.TemporaryDirectory(prefix="verbena-sanitizers-") as directory:
        tests = [("posts happen before polls", lambda: posts_are_ordered(directory))]
        for compiler in ("gcc", "clang"):
            for sanitizer, bugs in BUGS.items():
                program = build(directory, compiler, sanitizer) if shutil.which(compiler) else None
                tests.append((f"{compiler} -fsanitize={sanitizer}", program and (lambda p=program, b=bugs: of_sanitizer(p, b))))
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
