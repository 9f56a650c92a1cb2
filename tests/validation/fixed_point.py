"""DCQCN's fixed point: which share of packets is marked when N flows share a link and all stays as it is.

Its fluid model (Zhu et al., SIGCOMM 2015, 5; closed form in CoNEXT 2016) lets a receiver look every 50 us whether a packet was
marked. The protocol, and ours, sends a CNP for a marked packet if none was sent for 50 us: fewer, so more have to be marked. What
the protocol comes to is worked out here by itself: one flow by its rules, each packet marked by chance, and the chance sought at
which its rate is its share on average."""

import math
import random

LINK = 40e9 / 8 / 1001  # packets a second
FLUID = {2: 7.77e-4, 8: 4.55e-3, 10: 6.03e-3}
CNP_EVERY, TIME, GAIN, INCREASE, BYTES, FAST = 50e-6, 55e-6, 1 / 256, 40e6 / 8 / 1001, 10_000, 5


def rate_at(chance, first_rate, packets):
    """The mean rate, packets a second, of one flow of which so many are marked."""
    numbers = random.Random(1)
    rate = target = first_rate
    alpha, now, sent = 0.1, 0.0, 0.0
    told_at, raised_at, fallen_at, since_raise = -1.0, 0.0, 0.0, 0.0
    rounds = [0, 0]  # by time, by bytes
    until_mark = math.log(1 - numbers.random()) / math.log(1 - chance)
    while sent < packets:
        spans = (until_mark / rate, raised_at + TIME - now, fallen_at + TIME - now, (BYTES - since_raise) / rate)
        span = min(spans)
        which = spans.index(span)
        now, sent, since_raise, until_mark = now + span, sent + span * rate, since_raise + span * rate, until_mark - span * rate
        if which == 0:
            until_mark = math.log(1 - numbers.random()) / math.log(1 - chance)
            if now - told_at >= CNP_EVERY:
                target, rate = rate, rate * (1 - alpha / 2)
                alpha += (1 - alpha) * GAIN
                told_at = raised_at = fallen_at = now
                since_raise, rounds = 0.0, [0, 0]
        elif which == 2:
            alpha *= 1 - GAIN
            fallen_at = now
        else:
            if max(rounds) >= FAST:
                target = min(target + INCREASE, LINK)
            rate = (rate + target) / 2
            rounds[which == 3] += 1
            raised_at, since_raise = (now, since_raise) if which == 1 else (raised_at, 0.0)
    return sent / now


def of_protocol(flows):
    low, high = FLUID[flows] / 4, FLUID[flows] * 4
    for _ in range(12):
        middle = math.sqrt(low * high)
        if rate_at(middle, LINK / flows, 300_000) > LINK / flows:
            low = middle
        else:
            high = middle
    return math.sqrt(low * high)
