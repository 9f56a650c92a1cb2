"""What must hold once a disturbance is over: listeners hear, clients get through, connections are up or told."""

import re
import time

import places
from process import Failure, Process, stacks

HEARD_MS = 2000  # within which a fresh client is connected
FRESH_SECONDS = 12  # for its whole life, the start of a program on a busy machine included
THROUGH_SECONDS = 25  # for a client that lived through it: a request that was lost is sent again after 4.3 s
UP_OR_TOLD_SECONDS = 95  # the connection manager gives up after 16 requests of 4.3 s
END_SECONDS = 95


def dial(context, place, server, user="root", settings=None):
    """A fresh client, started."""
    arguments = [context.program("talk"), "client", server.place.address[4], server.port, "-n", 1, "-m", 3, "-p", 5,
                 "-t", 10]
    return Process(place, arguments, user, settings, name=f"fresh client of {server.name}")


def connect_ms(client):
    """How long the one connection of a fresh client took; None when there was none."""
    made = re.findall(r"^status made=1 .* worst_ms=(\d+)", client.stdout, re.M)
    return float(made[-1]) if made else None


def hears(context, server, place, user="root", attempts=1):
    """A fresh client is connected within two seconds; its time in milliseconds. Where packets are lost on purpose one
    lost request costs 4.3 s, and several may try."""
    seen = []
    for _ in range(attempts):
        with dial(context, place, server, user) as client:
            try:
                client.wait(FRESH_SECONDS)
            except Failure:
                pass
            took = connect_ms(client)
            if took is not None and took <= HEARD_MS and client.status == 0:
                context.report.worst("worst_fresh_connect_ms", took)
                return took
            seen.append(f"connected after {took:.0f} ms\n{client.evidence()}" if took is not None
                        else f"not connected\n{client.evidence()}")
    raise Failure(f"{server.name} is deaf: a fresh client was not served within {HEARD_MS} ms\n" + "\n".join(seen)
                  + f"\nThe server:\n{server.process.evidence(with_stacks=True)}\n{of_brokers((place, server.place))}")


def of_brokers(hosts):
    """Where their brokers are."""
    return "\n".join(f"Broker of {host.label}, process {pid}:\n{stacks(pid)}"
                     for host in hosts for pid in places.brokers(host))


def gets_through(client, seconds=THROUGH_SECONDS, by=1):
    """A client that lived through it makes connections again, or has all that it wants."""
    before = client.status().get("made", 0)
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        status = client.status()
        if status.get("made", 0) >= before + by or status.get("open", 0) >= client.at_once:
            return
        client.tick(time.monotonic())
        time.sleep(0.1)
    raise Failure(f"{client.name} does not get through any more: {client.status()}\n"
                  + client.process.evidence(with_stacks=True))


def is_empty(server, seconds=UP_OR_TOLD_SECONDS):
    """All clients have ended: the server was told of each connection's end."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        status = server.status()
        if status and status.get("open") == 0 and status.get("pending", 0) == 0:
            return
        time.sleep(0.2)
    raise Failure(f"{server.name} has connections that have ended and was told of none: {server.status()}\n"
                  + server.process.evidence())


def expect_no_problems(actors):
    problems = [problem for actor in actors for problem in actor.problems]
    if problems:
        raise Failure(f"{len(problems)} times something that may not be\n" + "\n".join(problems))


def parse_counts(text, word):
    """The numbers of the line that begins with word; {} when there is none."""
    lines = re.findall(rf"^{word} (.*)$", text, re.M)
    return {name: float(value) for name, value in re.findall(r"(\w+)=([\d.]+)", lines[-1])} if lines else {}


def expect_nothing_foreign(hostile):
    """The hostile program has ended: what it says of itself is that it read nothing of others."""
    counts = parse_counts(hostile.stdout, "hostile")
    if not counts:
        raise Failure(f"the hostile program did not come to its end\n{hostile.evidence()}")
    found = {name: counts[name] for name in ("foreign_packets", "foreign_bytes", "marks", "foreign_mads")
             if counts[name]}
    if found:
        raise Failure(f"it read what is not its own: {found}\n{hostile.evidence()}")
    return counts
