"""The random schedule of a run: what disturbs whom, when and for how long. Pure: it follows from the seed alone, so
that a seed replays a run as far as the machine's own timing lets it."""

import collections
import random

# what: kill, stop, flood or hostile. whom: parent, worker or both (of a host's broker), forwarder, server or client; of a
# flood its kind. at and seconds: from the round's beginning, and how long it lasts (0 for a kill).
Event = collections.namedtuple("Event", "at what whom host seconds rate", defaults=(0.0, 0))
Round = collections.namedtuple("Round", "number seconds is_shared is_lossy fault_seed events")

HOSTS = (0, 1)
FLOODS = (("req", 20000), ("req", 35000), ("discovery", 51000), ("junk", 30000))
MEAN_GAP_S = 0.6
BROKER_REST_S = 2.0  # of several users: the broker must be whole again, or another user's would take its place
QUIET_S = 1.0  # at the round's end, in which nothing begins
WEIGHTS = {"kill broker": 4, "stop broker": 3, "kill client": 2, "kill server": 1, "stop client": 2, "stop server": 2,
           "kill forwarder": 1, "stop forwarder": 1, "flood": 2, "hostile": 2}
OF_SEVERAL_USERS = ("hostile", "kill forwarder", "stop forwarder")


def plan(seed, number, seconds):
    """Round `number` of the run with that seed. A shared one has root's broker and several users, among them a hostile
    one; in the others all is one user's, and both processes of a broker may die at once."""
    dice = random.Random(f"{seed}/{number}")
    is_shared = number % 2 == 1
    is_lossy = dice.random() < 0.5
    fault_seed = dice.randrange(1, 1 << 30)
    events = []
    free_at = collections.defaultdict(float)  # when the next event of its sort may begin
    at = dice.expovariate(1 / MEAN_GAP_S)
    while at < seconds - QUIET_S:
        event = _draw(dice, at, seconds, is_shared)
        sort = _sort(event)
        if at >= free_at[sort]:
            events.append(event)
            rest = BROKER_REST_S if is_shared and sort[0] == "broker" else 0.3
            free_at[sort] = at + event.seconds + rest
        at += dice.expovariate(1 / MEAN_GAP_S)
    return Round(number, seconds, is_shared, is_lossy, fault_seed, events)


def _sort(event):
    """Events of one sort do not overlap."""
    if event.whom in ("parent", "worker", "both"):
        return ("broker", event.host)
    return (event.what, None) if event.what in ("flood", "hostile") else (event.whom, None)


def _draw(dice, at, seconds, is_shared):
    kinds = [kind for kind in WEIGHTS if is_shared or kind not in OF_SEVERAL_USERS]
    kind = dice.choices(kinds, [WEIGHTS[kind] for kind in kinds])[0]
    host = dice.choice(HOSTS)
    longest = max(seconds - at, 0.2)
    at = round(at, 3)
    if kind == "flood":
        whom, rate = dice.choice(FLOODS)
        return Event(at, "flood", whom, host, round(min(dice.uniform(1, 4), longest), 3), rate)
    if kind == "hostile":
        return Event(at, "hostile", "neighbour", host, round(min(dice.uniform(3, 6), longest), 3))
    what, whom = kind.split()
    if whom == "broker":
        # A stopped parent and its worker's death, or a death of both, would leave the port to whoever comes first.
        whom = dice.choice(("worker", "parent") if is_shared else ("worker", "parent", "both", "both"))
    lasts = round(min(_stop_seconds(dice), longest), 3) if what == "stop" else 0.0
    return Event(at, what, whom, host, lasts)


def _stop_seconds(dice):
    """0.1 to 5 s, short ones as often as long ones."""
    return 0.1 * 50 ** dice.random()


def describe(event):
    lasts = f" for {event.seconds:.1f} s" if event.seconds else ""
    rate = f" of {event.rate} a second" if event.rate else ""
    return f"{event.at:6.2f} s  {event.what} {event.whom} at host {'ab'[event.host]}{rate}{lasts}"
