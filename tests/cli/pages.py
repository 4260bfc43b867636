"""Command lines in pages: found in fenced blocks, and split into simple commands as a shell splits them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath

ROOT = Path(__file__).resolve().parents[2]
COMMANDS = ("", "sh", "console")
"""Languages of blocks that have commands. A block of anything else names its language, such as text or yaml."""
PROMPT = "$ "
"""Starts each command of a console block; its other lines are output."""
HELP = ROOT / "docs" / "reference" / "cli.md"
"""Generated from the help pages: a synopsis of each verb, and examples, where a remark follows after two spaces, without #."""
SYNOPSIS = "[OPTIONS]"
STAND_INS = {"CLUSTER": "jaguar", "cluster": "jaguar", "RING": "encryption"}
"""What pages write where the reader puts something else -> what is parsed and run."""
_FENCE = re.compile(r" *```(?P<language>\S*)")
_PLACEHOLDER = re.compile(r"<(?=\S)([^<>]*)>")
_NESTED = re.compile(r"\$\(([^()]*)\)")
_SPAN = re.compile(r"(?<!`)`((?:\./)?menagerie [^`]+)`(?!`)")


@dataclass(frozen=True)
class Block:
    """A fenced block. number: of its first line. lines: without the indent of the fence."""

    page: Path
    number: int
    language: str
    lines: tuple[str, ...]

    @property
    def text(self) -> str:
        return "".join(f"{line}\n" for line in self.lines)


@dataclass(frozen=True)
class Command:
    """A simple command. number: of its line. comment: of its line."""

    page: Path
    number: int
    words: tuple[str, ...]
    comment: str = ""

    @property
    def program(self) -> str:
        return PurePath(self.words[0]).name

    @property
    def place(self) -> str:
        return f"{named(self.page)}:{self.number}: {shlex.join(self.words)}"


def pages() -> list[Path]:
    """Return the pages whose commands are tested."""
    folders = ("start", "how-to", "runbooks", "reference", "explanation")
    docs = [page for folder in folders for page in sorted((ROOT / "docs" / folder).glob("*.md"))]
    return [*(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "examples/README.md", "tests/README.md")), *docs]


def named(page: Path) -> str:
    """Return the page's path from the checkout."""
    return str(page.relative_to(ROOT))


def block(page: str, language: str, start: str) -> Block:
    """Return a page's first block in a language whose text starts so."""
    return next(each for each in blocks(ROOT / page) if each.language == language and each.text.startswith(start))


def blocks(page: Path) -> Iterator[Block]:
    """Yield a page's fenced blocks."""
    language, first, lines = None, 0, list[str]()
    for number, line in enumerate(page.read_text().splitlines(), start=1):
        fence = _FENCE.match(line)
        if fence and language is None:
            language, first, indent, lines = fence["language"], number + 1, len(line) - len(line.lstrip()), []
        elif fence:
            yield Block(page, first, str(language), tuple(lines))
            language = None
        elif language is not None:
            lines.append(line[indent:])


def commands(page: Path) -> Iterator[Command]:
    """Yield the simple commands of a page, in order; those in $(…) come before the command that uses them."""
    for block in blocks(page):
        if block.language in COMMANDS:
            for number, line in _lines(block):
                text, comment = _halves(line, is_help=page == HELP)
                for words in simple(text):
                    yield Command(page, number, words, comment)


def of_menagerie(page: Path) -> list[Command]:
    return [command for command in commands(page) if command.program == "menagerie"]


def initialised(page: Path) -> set[str]:
    """Return the clusters that a page's `init` creates."""
    return {command.words[2] for command in of_menagerie(page) if command.words[1] == "init"}


def filled_in(words: Sequence[str]) -> list[str]:
    """Replace placeholders, and patterns that the shell replaces by files of the working folder."""
    words = [STAND_INS.get(word, word) for word in words]
    return [each for word in words for each in (sorted(map(str, Path().glob(word))) if "*/" in word else [word])]


def spans(page: Path) -> Iterator[Command]:
    """Yield the commands of menagerie that are code within a page's sentences. They may lack arguments."""
    inside = {number for block in blocks(page) for number in range(block.number, block.number + len(block.lines))}
    for number, line in enumerate(page.read_text().splitlines(), start=1):
        for span in _SPAN.finditer(line) if number not in inside else ():
            yield from (Command(page, number, words) for words in simple(span[1]) if words[0].endswith("menagerie"))


def _lines(block: Block) -> Iterator[tuple[int, str]]:
    """Yield (number, line) of a block's command lines, continued lines joined."""
    lines = [(block.number + place, line) for place, line in enumerate(block.lines)]
    if block.language == "console":
        lines = [(number, line.removeprefix(PROMPT)) for number, line in lines if line.startswith(PROMPT)]
    lines = [(number, line) for number, line in lines if not line.endswith(SYNOPSIS)]
    first, joined = 0, ""
    for number, line in lines:
        first = first if joined else number
        joined += line.removesuffix("\\")
        if not line.endswith("\\"):
            yield first, joined
            joined = ""


def _halves(line: str, *, is_help: bool) -> tuple[str, str]:
    """Split a line into the command and its comment."""
    comment = re.search(r" {2,}" if is_help else r"(^|\s)#\s", line)
    return (line[: comment.start()], line[comment.end() :]) if comment else (line, "")


def simple(line: str) -> Iterator[tuple[str, ...]]:
    """Yield the words of each simple command of a line, without redirections and assignments.

    Placeholders such as <name> are words.
    """
    line = _PLACEHOLDER.sub(lambda match: re.sub(r"\W", "-", match[1]), line)
    while nested := _NESTED.search(line):
        yield from simple(nested[1])
        line = line.replace(nested[0], "output")
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|&;<>")
    lexer.whitespace_split, lexer.commenters = True, ""
    words: list[str] = []
    tokens = list(lexer)
    for place, token in enumerate(tokens):
        if set(token) <= set("|&;"):
            yield from _bare(words)
            words = []
        elif not set(token) <= set("<>") and not (place and set(tokens[place - 1]) <= set("<>")):
            words.append(token)
    yield from _bare(words)


def _bare(words: list[str]) -> Iterator[tuple[str, ...]]:
    while words and re.match(r"[A-Z_]+=", words[0]):
        words = words[1:]
    if words:
        yield tuple(words)
