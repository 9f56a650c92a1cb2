"""What is left to do of the bounds that the tests of form hold: left.tsv has a row "kind<tab>what<tab>value" for each place that
does not keep to its bound yet. A value may only come nearer to the bound: a test fails where it is exceeded, and says where the
row is behind. `TEST ROOT --write` puts today's values there, and takes out rows that are needed no longer."""

import pathlib

TABLE = pathlib.Path(__file__).with_name("left.tsv")
HEADING = "# What does not keep to the bounds of the tests of form yet, written by these with --write: see left.py."


def read(path=TABLE):
    rows = (line.split("\t") for line in path.read_text().splitlines() if line and not line.startswith("#"))
    return {(kind, what): float(value) for kind, what, value in rows}


def write(kind, values, path=TABLE):
    """values: {what: value} of all that misses its bound."""
    rows = {key: value for key, value in read(path).items() if key[0] != kind}
    rows |= {(kind, what): value for what, value in values.items()}
    path.write_text("\n".join([HEADING, *(f"{key[0]}\t{key[1]}\t{rows[key]:g}" for key in sorted(rows))]) + "\n")


def of(kind, path=TABLE):
    return {what: value for (its, what), value in read(path).items() if its == kind}
