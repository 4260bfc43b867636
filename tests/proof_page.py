"""docs/reference/proof.md: promises, their proofs, and how real the parts are. Generated from tests/proofs.yaml and tests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import yaml

from tests.levels import TESTS, WORDS, TestFunction, functions

SOURCE = TESTS / "proofs.yaml"
PAGE = TESTS.parent / "docs" / "reference" / "proof.md"
HEADS = {
    "mission": "What a fleet for GPU research needs",
    "promises": "What is promised about data and service ([promises.md](../explanation/promises.md))",
    "readme": "What else the README says",
}


class UnknownTestError(Exception):
    """Rows name tests that do not exist; the text lists all of them, with their rows."""


@dataclass(frozen=True)
class Proof:
    """A row. tests: the ones that it names; if it names only a file, all tests of the file."""

    promise: str
    tests: tuple[TestFunction, ...]
    commands: tuple[str, ...]
    never: str

    def level(self) -> str:
        """Return how real the most real of its tests is."""
        levels = {test.level for test in self.tests}
        text = next(words for level, words in WORDS.items() if level in levels)
        return f"{text}; `make soak` alone" if all(test.soak for test in self.tests) else text


def proofs() -> dict[str, list[Proof]]:
    """Return the rows by part of the page. Raises UnknownTestError, and KeyError for a part without a heading."""
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


def _named(name: str) -> tuple[TestFunction, ...]:
    place, _, function = name.partition("::")
    return tuple(test for test in functions() if test.place == place and function in ("", test.name))


def _proof(row: Mapping[str, object]) -> Proof:
    tests = tuple(test for name in _names(row) for test in _named(name))
    commands = tuple(row["commands"])  # type: ignore[arg-type]
    return Proof(str(row["promise"]), tests, commands, str(row.get("never", "")))


def rendered() -> str:
    """Return the text of the page."""
    return (
        "\n".join([*_top(), *_counts(), *(line for part, rows in proofs().items() for line in _part(part, rows))])
        + "\n"
    )


def _top() -> list[str]:
    return [
        "# Promises, their proofs, and how real the proofs are",
        "",
        "`make golden` writes this page from tests/proofs.yaml. `make check` fails if a row names a test that does not exist.",
        "A test that is skipped on a machine that the set-up has prepared fails the run.",
        "",
    ]


def _counts() -> Iterator[str]:
    """Count test functions by level. Items would say less: one function may have hundreds."""
    counts = Counter(test.level for test in functions())
    yield from ("## Tests by how real their parts are", "", "| parts | test functions | run by |", "|---|---|---|")
    runs = {"pure": "`make check`", "lab": "`make test`, last part"}
    for level, words in WORDS.items():
        yield f"| {words} | {counts[level]} | {runs.get(level, '`make slow`')} |"
    yield from (
        "",
        f"{sum(test.soak for test in functions())} of these run only in `make soak`, because they take many minutes.",
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


def _sentence(test: TestFunction) -> str:
    return test.name.removeprefix("test_").replace("_", " ")
