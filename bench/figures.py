"""The table of a benchmark: what was measured in every round, what is wanted of the median, and what missed it."""

import json
import pathlib
import statistics


class Figure:
    """One line: the values of all rounds. bound: why it is what it is where it misses, kept beside its declaration."""

    def __init__(self, part, text, unit, at_least=None, at_most=None, bound=""):
        self.part, self.text, self.unit, self.bound = part, text, unit, bound
        self.at_least, self.at_most = at_least, at_most
        self.values = []
        self.absent = ""  # why there is nothing to measure

    @property
    def median(self):
        return statistics.median(self.values) if self.values else None

    @property
    def quartiles(self):
        """(lower, upper)"""
        if len(self.values) < 2:
            return self.median, self.median
        lower, _, upper = statistics.quantiles(self.values, n=4, method="inclusive")
        return lower, upper

    @property
    def wanted(self):
        if self.at_least is not None:
            return f">= {self.at_least:g}"
        return f"<= {self.at_most:g}" if self.at_most is not None else ""

    @property
    def is_met(self):
        if not self.wanted:
            return True
        return bool(self.values) and (self.at_least is None or self.median >= self.at_least) and (
            self.at_most is None or self.median <= self.at_most)

    @property
    def verdict(self):
        return "" if not self.wanted else "met" if self.is_met else "MISSED"

    @property
    def miss(self):
        """Why it missed, in a line."""
        if self.absent:
            return f"{self.text}: {self.absent}"
        if not self.values:
            return f"{self.text}: not measured"
        return f"{self.text}: {self.median:.3f}, wanted {self.wanted}: {self.bound or 'its bound has not been looked for'}"


class Figures(dict):
    """By key, in the order in which they are first declared."""

    def __init__(self):
        super().__init__()
        self.part = ""  # of what is declared next

    def declare(self, key, *arguments, **wanted):
        return self.setdefault(key, Figure(self.part, *arguments, **wanted))

    def add(self, key, value, *arguments, **wanted):
        self.declare(key, *arguments, **wanted).values.append(value)

    def compare(self, key, text, unit, ours, theirs, beside="TCP", **wanted):
        """Three lines: over Verbena, over what stands beside it, the ratio, of which something may be wanted."""
        self.add(key, ours, f"{text}, Verbena", unit)
        self.add(f"{key}_{_word(beside)}", theirs, f"{text}, {beside}", unit)
        self.add(f"{key}_ratio", ours / theirs, f"{text}, Verbena / {beside}", "", **wanted)

    def declare_absent(self, key, reason, *arguments, **wanted):
        self.declare(key, *arguments, **wanted).absent = reason

    @property
    def misses(self):
        return [figure.miss for figure in self.values() if not figure.is_met]

    def table(self):
        """Lines."""
        width = max(len(figure.text) for figure in self.values())
        yield f"{'':{width}}  {'median':>10} {'quartiles':>21} {'smallest':>10} {'largest':>10}          wanted"
        part = ""
        for figure in self.values():
            if figure.part != part:
                part = figure.part
                yield part
            numbers = f"{figure.absent or 'not measured':>54}"
            if figure.values:
                lower, upper = figure.quartiles
                numbers = f"{figure.median:10.3f} {lower:10.3f} {upper:10.3f} {min(figure.values):10.3f} {max(figure.values):10.3f}"
            yield f"{figure.text:{width}}  {numbers} {figure.unit:9} {figure.wanted:8} {figure.verdict}".rstrip()

    def as_json(self):
        return {key: {"part": figure.part, "text": figure.text, "unit": figure.unit, "median": figure.median,
                      "values": figure.values, "wanted": figure.wanted, "verdict": figure.verdict}
                for key, figure in self.items()}

    def conclude(self, failures, file):
        """Prints the table and what was missed, with the texts of failures, and writes the JSON to file unless that is
        None. Returns the exit status."""
        if self:
            print("\n".join(self.table()))
        misses = self.misses + failures
        if misses:
            print("\nMissed:\n  " + "\n  ".join(misses))
        if file:
            pathlib.Path(file).write_text(json.dumps(self.as_json(), indent=1) + "\n")
        return 1 if misses else 0


def _word(text):
    return "".join(letter if letter.isalnum() else "_" for letter in text.lower())
