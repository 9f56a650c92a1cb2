"""Live tests: a peer that is killed, stopped or cut off in the middle; the one that is left says which, and soon."""

import signal
import time

import peers
import places
import programs
from live import live_test
from process import Failure, Process

START_SECONDS = 2.0  # within which perftest has measured the clock and shaken hands
WORD_SECONDS = 15  # for a first word, which takes 4 s at most where cores are free
FINAL_SECONDS = 77  # after which rping's request fails
WORDS = {signal.SIGKILL: "has ended", signal.SIGSTOP: "is stopped"}


def by_memory(context):
    return context.world.own_loopback("silence")


def by_wire(context):
    place = context.world.fresh_namespace("silence")
    place.settings.update(places.WIRE)
    return places.Path("vb_lo", place, place, 4096)


def by_veth(context):
    return context.world.veth("silence", 1500)


WAYS = {"by memory": by_memory, "as packets": by_wire, "over a veth": by_veth}


def expect_word(path, program, blow, choose):
    """choose(server, client) says who gets the blow and who is to tell of it."""
    with peers.perftest_pair(path, program, "-D", "30", "-s", "4096") as pair:
        time.sleep(START_SECONDS)
        for process in pair:
            if process.status is not None:
                raise Failure(f"{process.name} ended before the blow\n{process.evidence()}")
        victim, survivor = choose(*pair)
        victim.signal(blow)
        survivor.wait_output(rf"^verbena: .*{WORDS[blow]}", WORD_SECONDS)


def server_is_hit(server, client):
    return server, client


def client_is_hit(server, client):
    return client, server


def enter(way, blow):
    @live_test(f"{blow.name} of a perftest peer, {way}: who sends and who waits for a message say that it {WORDS[blow]}")
    def run(context):
        path = WAYS[way](context)
        expect_word(path, "ib_write_bw", blow, server_is_hit)
        expect_word(path, "ib_send_lat", blow, server_is_hit)
        expect_word(path, "ib_send_bw", blow, client_is_hit)


for each_way in WAYS:
    for each_blow in WORDS:
        enter(each_way, each_blow)


@live_test("rping to an address where packets vanish says so long before it gives up")
def rping_into_nothing(context):
    path = by_veth(context)
    nobody = "10.79.0.9"
    path.client.run("ip", "neigh", "add", nobody, "lladdr", "02:00:00:00:00:99", "dev",
                    path.client.device.removeprefix("vb_"), "nud", "permanent")
    began = time.monotonic()
    with Process(path.client, ["rping", "-c", "-a", nobody, "-p", programs.next_port()]) as client:
        client.wait_output(rf"^verbena: connection to {nobody} .*no answer yet", WORD_SECONDS)
        if time.monotonic() - began > FINAL_SECONDS / 4:
            raise Failure(f"the first word came as late as the last\n{client.evidence()}")
        if client.status is not None:
            raise Failure(f"{client.name} has given up already\n{client.evidence()}")
