"""docs/reference/proof.md: each promise, what proves it, and how real the parts are. Made of tests/proofs.yaml and of the tests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import yaml

from tests.levels import TESTS, WORDS, Found, functions

SOURCE = TESTS / "proofs.yaml"
PAGE = TESTS.parent / "docs" / "reference" / "proof.md"
HEADS = {
    "mission": "What a fleet for GPU research needs",
    "promises": "What is promised of data and service ([promises.md](../explanation/promises.md))",
    "readme": "What else the README says",
}


class UnknownTestError(Exception):
    """A row names a test that does not exist: all of them, with the row."""


@dataclass(frozen=True)
class Proof:
    """A row. tests: those that it names, a whole file's when it names the file alone."""

    promise: str
    tests: tuple[Found, ...]
    commands: tuple[str, ...]
    never: str

    def level(self) -> str:
        """By how real the most real of its tests is."""
        found = {each.level for each in self.tests}
        word = next(text for level, text in WORDS.items() if level in found)
        return f"{word}; `make soak` alone" if all(each.soak for each in self.tests) else word


def proofs() -> dict[str, list[Proof]]:
    """The rows by part of the page. UnknownTestError; KeyError for a part without a head."""
    rows: Mapping[str, list[dict[str, object]]] = yaml.safe_load(SOURCE.read_text())
    unknown = [
        f"{row['promise']}: tests/{name}"
        for part in rows.values()
        for row in part
        for name in _names(row)
        if not _named(name)
    ]
    if unknown:
        raise UnknownTestError("tests/proofs.yaml names tests that do not exist:\n" + "\n".join(unknown))
    return {part: [_proof(row) for row in rows[part]] for part in HEADS}


def _names(row: Mapping[str, object]) -> list[str]:
    return list(row["tests"])  # type: ignore[call-overload]


def _named(name: str) -> tuple[Found, ...]:
    place, _, function = name.partition("::")
    return tuple(each for each in functions() if each.place == place and function in ("", each.name))


def _proof(row: Mapping[str, object]) -> Proof:
    tests = tuple(each for name in _names(row) for each in _named(name))
    commands = tuple(row["commands"])  # type: ignore[arg-type]
    return Proof(str(row["promise"]), tests, commands, str(row.get("never", "")))


def rendered() -> str:
    """The page."""
    return (
        "\n".join([*_top(), *_counts(), *(line for part, rows in proofs().items() for line in _part(part, rows))])
        + "\n"
    )


def _top() -> list[str]:
    return [
        "# What is proved, by what, and how real it is",
        "",
        "`make golden` writes this page from tests/proofs.yaml; `make check` fails where a row names a test that does not exist,",
        "and a test that is skipped on a machine which the set-up has prepared fails the run.",
        "",
    ]


def _counts() -> Iterator[str]:
    """Test functions by level. Items, of which one function may have hundreds, say less."""
    counted = Counter(each.level for each in functions())
    yield from ("## Tests by how real their parts are", "", "| parts | test functions | run by |", "|---|---|---|")
    by = {"pure": "`make check`", "lab": "`make test`, last part"}
    for level, words in WORDS.items():
        yield f"| {words} | {counted[level]} | {by.get(level, '`make slow`')} |"
    yield from (
        "",
        f"Of these, {sum(each.soak for each in functions())} run in `make soak` alone, for they take many minutes.",
        "",
    )


def _part(part: str, rows: list[Proof]) -> Iterator[str]:
    yield from (
        f"## {HEADS[part]}",
        "",
        "| promise | proved by | parts | never tried on the real thing |",
        "|---|---|---|---|",
    )
    for row in rows:
        named = dict.fromkeys(f"`{each.place}`: {_sentence(each)}" for each in row.tests[:3])
        commands = [f"`{each}`" for each in row.commands]
        yield f"| {row.promise} | {'<br>'.join([*named, *commands])} | {row.level()} | {row.never} |"
    yield ""


def _sentence(found: Found) -> str:
    return found.name.removeprefix("test_").replace("_", " ")
