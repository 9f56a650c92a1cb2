"""What a run found: each check as a passed or failed case, and the figures, as text and as JSON."""

import json
import pathlib
import time

FIGURES = ("connections", "told", "kills", "stops", "floods", "hostiles", "restarts", "worst_connect_ms",
           "worst_fresh_connect_ms")


class Report:
    def __init__(self, seed, file=None):
        self.seed = seed
        self.file = file
        self.cases = []
        self.figures = dict.fromkeys(FIGURES, 0)
        self.began = time.monotonic()
        self._said = self.began

    def add(self, name, result, why="", seconds=0.0):
        self.cases.append({"name": name, "result": result, "why": why, "seconds": round(seconds, 3)})
        if result == "failed":
            print(f"\nFAILED  {name}\n{_indent(why)}\n", flush=True)
        else:
            print(f"{result:7} {name} ({seconds:.1f} s)" + (f": {why}" if why else ""), flush=True)

    def count(self, result):
        return sum(case["result"] == result for case in self.cases)

    def figure(self, name, by=1):
        self.figures[name] += by

    def worst(self, name, value):
        self.figures[name] = max(self.figures[name], value)

    def progress(self, text, every=4.0):
        """A line, not more often than that."""
        now = time.monotonic()
        if now - self._said >= every:
            self._said = now
            print(f"  {now - self.began:5.0f} s  {text}", flush=True)

    def close(self):
        for case in self.cases:
            if case["result"] == "skipped":
                print(f"skipped chaos: {case['name']}: {case['why']}")
        for case in self.cases:
            if case["result"] == "failed":
                print(f"FAILED: chaos: {case['name']}: {case['why'].splitlines()[0] if case['why'] else ''}")
        print("figures: " + ", ".join(f"{name} {value:.0f}" for name, value in self.figures.items()))
        print(f"seed {self.seed}, {time.monotonic() - self.began:.0f} s")
        print(f"{self.count('passed')} passed, {self.count('failed')} failed, {self.count('skipped')} skipped")
        if self.file:
            whole = {"seed": self.seed, "figures": self.figures, "cases": self.cases}
            pathlib.Path(self.file).write_text(json.dumps(whole, indent=1) + "\n")
        return 1 if self.count("failed") else 0


def _indent(text):
    return "\n".join("    " + line for line in text.splitlines())
