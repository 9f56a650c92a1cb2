"""Rounds of chaos: connections come and go while a schedule (schedule.py) kills, stops, floods and lets a hostile user
in; then calm, and what must hold is checked."""

import contextlib
import random
import signal
import time

import actors
import checks
import schedule
from arena import Arena, send_signal
from process import Failure, Process, stacks

LOSS = "drop=2%,seed={}"
CALM_SECONDS = 1.0  # for what is under way to arrive; then everybody must be there
OTHER = {True: "5001", False: "root"}
HOSTILE = "5002"
LOSSY_ATTEMPTS = 4
TURN_SECONDS = 0.05
WHOLE_SECONDS = 8


class Cast:
    """The actors of a round, and what acts on them."""

    def __init__(self, context, arena, plan):
        self.context = context
        self.arena = arena
        self.plan = plan
        self.settings = {"TMPDIR": context.temporary}
        if plan.is_lossy:
            self.settings["VERBENA_FAULTS"] = LOSS.format(plan.fault_seed)
        self.all = []
        self.passing = []  # floods and hostile programs that run
        self.hostiles = []
        self.stopped_brokers = []  # (when they go on, process ids)
        try:
            self._enter()
        except BaseException:
            self.close()
            raise

    def _enter(self):
        context, (a, b), other, settings = self.context, self.arena.hosts, OTHER[self.plan.is_shared], self.settings
        self.servers = [self._add(actors.talk_server(context, b, "server at b", settings=settings)),
                        self._add(actors.talk_server(context, a, "server at a", other, settings))]
        for server in self.servers:
            server.process.wait_output(r"^listening$", 15)
        self.streams = self._add(actors.stream(context, b, "server", b, 17700, "rsockets server", settings=settings))
        self.clients = [
            self._add(actors.talk_client(context, a, self.servers[0], "churning client at a", "root", settings, 8)),
            self._add(actors.talk_client(context, b, self.servers[1], "churning client at b", other, settings, 4)),
            self._add(actors.talk_client(context, a, self.servers[0], "lasting client at a", other, settings,
                                          4, 0, 50))]
        self.stream_client = self._add(actors.stream(context, a, "client", b, 17700, "rsockets client", other,
                                                    settings))
        dice = random.Random(self.plan.fault_seed)
        self.pair = self._add(actors.Pair(context, "verbs pair", b, a, dice, other, settings))

    def _add(self, actor):
        self.all.append(actor)
        return actor

    # ----------------------------------------------------------------------------------------------------- disturbing

    def strike(self, event):
        report = self.context.report
        if event.what == "flood":
            self._flood(event)
        elif event.what == "hostile":
            self._let_in(event)
        elif event.whom in ("parent", "worker", "both", "forwarder"):
            self._strike_broker(event)
        else:
            victims = self.servers + [self.streams] if event.whom == "server" else \
                self.clients + [self.stream_client, self.pair]
            victims = [actor for actor in victims if not actor.is_stopped()]
            if victims:
                victim = victims[int(event.at * 1000) % len(victims)]
                victim.kill() if event.what == "kill" else victim.stop(event.seconds)
        report.figure({"kill": "kills", "stop": "stops", "flood": "floods", "hostile": "hostiles"}[event.what])

    def _strike_broker(self, event):
        found = self.arena.forwarders(event.host) if event.whom == "forwarder" else self.arena.brokers(event.host)
        chosen = {"parent": found[:1], "worker": found[1:2], "both": found, "forwarder": found[:1]}[event.whom]
        for pid in chosen:
            send_signal(pid, signal.SIGKILL if event.what == "kill" else signal.SIGSTOP)
        if event.what == "stop":
            self.stopped_brokers.append((time.monotonic() + event.seconds, chosen))

    def _flood(self, event):
        target = self.arena.address(event.host)
        arguments = [self.context.program("flood"), "--kind", event.whom, "--rate", event.rate, "--seconds",
                     event.seconds, "--port", self.servers[1 - event.host].port, "--spoof-random", target]
        self.passing.append(Process(self.arena.hosts[1 - event.host], arguments, through_verbena=False))

    def _let_in(self, event):
        peers = [self.arena.address(event.host), self.arena.address(1 - event.host)]
        arguments = [self.context.program("hostile"), "--seconds", event.seconds, "--seed", self.plan.fault_seed,
                     "--peer", peers[0], "--peer", peers[1]]
        hostile = Process(self.arena.hosts[event.host], arguments, HOSTILE, through_verbena=False)
        self.hostiles.append(hostile)
        self.passing.append(hostile)

    def tick(self):
        now = time.monotonic()
        for actor in self.all:
            actor.tick(now)
        for until, pids in [entry for entry in self.stopped_brokers if entry[0] <= now]:
            self.stopped_brokers.remove((until, pids))
            for pid in pids:
                send_signal(pid, signal.SIGCONT)
        if self.plan.is_shared:
            for number in (0, 1):
                self._keep_daemon(number)

    def _keep_daemon(self, number):
        """As a service manager does: root's broker is started again when nothing of it is left."""
        if not self.arena.brokers(number):
            self.arena.daemons[number].__exit__()
            self.arena.start_daemon(number)

    def run_for(self, seconds):
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self.tick()
            time.sleep(TURN_SECONDS)

    def calm(self):
        """The disturbance ends: everything goes on, floods and hostile programs end, the brokers are whole."""
        for _, pids in self.stopped_brokers:
            for pid in pids:
                send_signal(pid, signal.SIGCONT)
        self.stopped_brokers.clear()
        for actor in self.all:
            actor.go_on()
        for process in self.passing:
            process.wait(10)
        found = [self.arena.wait_whole(number, WHOLE_SECONDS) for number in (0, 1)]
        self.run_for(CALM_SECONDS)
        if [len(pids) for pids in found] != [2, 2]:
            raise Failure(f"the brokers were not made whole within {WHOLE_SECONDS} s: processes {found}\n"
                          + "\n".join(f"process {pid}:\n{stacks(pid)}" for pids in found for pid in pids))

    # -------------------------------------------------------------------------------------------------------- figures

    def sum(self, name):
        return sum(actor.sum(name) for actor in self.clients + [self.stream_client])

    def tell(self):
        figures = self.context.report.figures
        worst = max([actor.sum("worst_ms") for actor in self.clients] or [0])
        return (f"made {self.sum('made'):.0f}, told {self.sum('told'):.0f}, pairs {self.pair.verified} verified and "
                f"{self.pair.told} told, kills {figures['kills']}, stops {figures['stops']}, "
                f"floods {figures['floods']}, worst connect {worst:.0f} ms")

    def record(self):
        report = self.context.report
        report.figure("connections", self.sum("made") + self.pair.verified)
        report.figure("told", self.sum("told") + self.pair.told)
        report.figure("restarts", sum(actor.epochs - 1 for actor in self.clients + self.servers))
        for actor in self.clients:
            report.worst("worst_connect_ms", max(actor.total.get("worst_ms", 0), actor.status().get("worst_ms", 0)))

    def close(self):
        for actor in self.all:
            actor.close()
        for process in self.passing:
            process.__exit__()


def run_round(context, plan):
    """Each of its checks is a case of the report."""
    users = "several users, root's broker" if plan.is_shared else "one user"
    name = f"round {plan.number}"
    print(f"{name}: {users}, {'2% loss, ' if plan.is_lossy else ''}{len(plan.events)} events", flush=True)
    for event in plan.events:
        print("  " + schedule.describe(event), flush=True)
    with Arena(context, f"churn{plan.number}", plan.is_shared) as arena:
        with contextlib.closing(Cast(context, arena, plan)) as cast:
            _disturb(cast, plan, name)
            context.case(f"{name}: floods and hostile programs end, the brokers are whole", cast.calm)
            _check(context, cast, plan, name)
            cast.record()
        context.case(f"{name}: nothing is left behind", arena.expect_nothing_left)


def _disturb(cast, plan, name):
    began = time.monotonic()
    events = list(plan.events)
    while time.monotonic() - began < plan.seconds:
        while events and time.monotonic() - began >= events[0].at:
            cast.strike(events.pop(0))
        cast.tick()
        cast.context.report.progress(f"{name}: {cast.tell()}")
        time.sleep(TURN_SECONDS)


def _check(context, cast, plan, name):
    hosts = cast.arena.hosts
    attempts = LOSSY_ATTEMPTS if plan.is_lossy else 1
    for server in cast.servers:
        other = hosts[1] if server.place is hosts[0] else hosts[0]
        context.case(f"{name}: {server.name} hears a fresh client",
                     lambda server=server, other=other: checks.hears(context, server, other, server.user, attempts))
    for client in cast.clients + [cast.stream_client]:
        context.case(f"{name}: {client.name} gets through", lambda client=client: checks.gets_through(client))
    if cast.hostiles:
        def read_nothing():
            for hostile in cast.hostiles:
                checks.expect_nothing_foreign(hostile)
        context.case(f"{name}: hostile programs read nothing of others", read_nothing)

    def end():
        """Clients first: then each server must have been told of all of them."""
        for actor in cast.clients + [cast.stream_client, cast.pair]:
            actor.ask_to_end()
        for actor in cast.clients + [cast.stream_client, cast.pair]:
            actor.await_end(checks.END_SECONDS)
        context.report.progress(f"{name}: the clients have ended", 0)
        for server in cast.servers + [cast.streams]:
            checks.is_empty(server)
        for server in cast.servers + [cast.streams]:
            server.ask_to_end()
            server.await_end(checks.END_SECONDS)

    context.case(f"{name}: every connection is up or told on both ends", end)
    context.case(f"{name}: nobody hung, fell silent or saw wrong bytes", lambda: checks.expect_no_problems(cast.all))


def run(context, seconds, only_round=None):
    """Rounds until the time is up; at least one of each sort."""
    until = time.monotonic() + seconds
    number = 0
    while only_round is None and (time.monotonic() < until or number < 2):
        run_round(context, schedule.plan(context.seed, number, context.round_seconds))
        number += 1
    if only_round is not None:
        run_round(context, schedule.plan(context.seed, only_round, context.round_seconds))
