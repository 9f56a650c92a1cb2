"""Covering arrays: few rows of a product such that every pair of values that occurs together in the product occurs in
a chosen row. Deterministic for a seed."""

import itertools
import random

SAMPLE = 40  # candidate rows looked at for each row chosen


def pairs_of(row):
    """The pairs of (column, value) in a row, as a set."""
    return {(first, row[first], second, row[second]) for first, second in itertools.combinations(range(len(row)), 2)}


def choose(rows, seed=1):
    """A subset of rows (tuples of equal length) that covers every pair that rows has, in the order of rows."""
    rows = list(rows)
    generator = random.Random(seed)
    holders = {}
    for index, row in enumerate(rows):
        for pair in pairs_of(row):
            holders.setdefault(pair, []).append(index)
    uncovered = set(holders)
    chosen = set()
    # Rare pairs first: they leave the least choice, and the rows they force cover much of the rest.
    for pair in sorted(holders, key=lambda pair: (len(holders[pair]), repr(pair))):
        if pair not in uncovered:
            continue
        candidates = holders[pair]
        if len(candidates) > SAMPLE:
            candidates = generator.sample(candidates, SAMPLE)
        best = max(candidates, key=lambda index: (len(pairs_of(rows[index]) & uncovered), -index))
        chosen.add(best)
        uncovered -= pairs_of(rows[best])
    return [rows[index] for index in sorted(chosen)]
