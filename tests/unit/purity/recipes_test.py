"""recipes_test.py ROOT: each source file that docs/recipes.md mentions exists under that path."""

import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1])
text = (root / "docs/recipes.md").read_text()
mentioned = set(re.findall(r"(?<![\w./-])[\w./-]+\.(?:py|yaml)\b", text))
if not any(name.startswith("examples/programs/") for name in mentioned):
    sys.exit("docs/recipes.md mentions no program of examples/programs")
missing = sorted(name for name in mentioned if not (root / name).is_file())
if missing:
    sys.exit("docs/recipes.md mentions files that do not exist: " + ", ".join(missing))
