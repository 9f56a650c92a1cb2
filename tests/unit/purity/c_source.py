"""A C file by regular expressions: its comments, and its functions with their bodies. Good to a few per cent, and quick."""

import bisect
import collections
import re

TOKEN = re.compile(r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", re.S)
DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n\\]|\\\n|\\.)*", re.M)
ATTRIBUTE = re.compile(r"__attribute__\s*\(\(.*?\)\)", re.S)
TYPE = re.compile(r"(struct|union|enum)\s+\w*\s*$")

Comment = collections.namedtuple("Comment", "line text")
Function = collections.namedtuple("Function", "name line is_static body")  # line: of the "{"; body: from there to the "}"


def blank(match):
    return re.sub(r"[^\n]", " ", match[0])


def is_function(head):
    """Whether "{" opens a function's body after this text: it ends in ")", and has no "=" outside of parentheses."""
    outside, depth = "", 0
    for piece in re.findall(r"[()]|[^()]+", head):
        depth += {"(": 1, ")": -1}.get(piece, 0)
        outside += piece if depth == 0 else ""
    return head.endswith(")") and "=" not in outside and not TYPE.match(head)


class Source:
    """code: the text with comments, literals and directives blanked, so that each line is where it was."""

    def __init__(self, path):
        self.path = path
        self.text = path.read_text(errors="replace")
        self.lines = self.text.count("\n")
        self.code = DIRECTIVE.sub(blank, TOKEN.sub(blank, self.text))
        self._newlines = [match.start() for match in re.finditer("\n", self.text)]

    def line_of(self, offset):
        return bisect.bisect_left(self._newlines, offset) + 1

    def comments(self):
        for match in TOKEN.finditer(self.text):
            if match[0].startswith(("/*", "//")):
                yield Comment(self.line_of(match.start()), match[0])

    def functions(self):
        depth, head_from, opened = 0, 0, None
        for match in re.finditer("[{};]", self.code):
            if match[0] == "{":
                if depth == 0:
                    opened = self._opened(self.code[head_from:match.start()], match.start())
                depth += 1
            elif match[0] == "}":
                depth = max(depth - 1, 0)
                if depth == 0:
                    if opened:
                        name, is_static, start = opened
                        yield Function(name, self.line_of(start), is_static, self.code[start:match.end()])
                    opened, head_from = None, match.end()
            elif depth == 0:
                head_from = match.end()

    @staticmethod
    def _opened(head, start):
        head = ATTRIBUTE.sub("", head).strip()
        name = re.search(r"(\w+)\s*\(", head)
        if name and is_function(head):
            return name[1], bool(re.search(r"\bstatic\b", head)), start
        return None


def sources(root, pattern="*.[ch]"):
    return [Source(path) for path in sorted((root / "src").rglob(pattern))]


def place(root, source, line):
    return f"{source.path.relative_to(root)}:{line}"
