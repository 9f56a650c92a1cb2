"""What a row compares. tolerance: a share of the published figure, or None: it is told, and not judged. spread: what chance makes
of our own, from and to; a published figure between these is one of the draws."""

import collections
import statistics

Figure = collections.namedtuple("Figure", "what published ours tolerance unit spread", defaults=("", None))


def jain(values):
    return sum(values) ** 2 / (len(values) * sum(value * value for value in values))


def percentile(values, share):
    values = sorted(values)
    return values[min(len(values) - 1, int(share * len(values)))]


def spread_of(values):
    """Two standard deviations about the mean."""
    mean, deviation = statistics.mean(values), statistics.pstdev(values)
    return (mean - 2 * deviation, mean + 2 * deviation) if deviation else None
