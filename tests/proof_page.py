"""docs/reference/proof.md: promises, their proofs, and how real the parts are. Generated from tests/proofs.yaml and tests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
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
    """A row. tests: the ones that it names; if it names only a file, all tests of the file. shown: what the page says of them."""

    promise: str
    tests: tuple[TestFunction, ...]
    shown: tuple[str, ...]
    commands: tuple[str, ...]
    never: str

    def level(self) -> str:
        """Return how real the most real of its tests is: of those of `make test`, and of those of `make soak` if they are more real."""
        always = _most_real(test for test in self.tests if not test.soak)
        best = _most_real(self.tests)
        if not always:
            return f"{best}; `make soak` alone"
        return always if always == best else f"{always}; in `make soak` {best}"


def _most_real(tests: Iterable[TestFunction]) -> str:
    levels = {test.level for test in tests}
    return next((words for level, words in WORDS.items() if level in levels), "")


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


def proved_rows() -> list[str]:
    """Return the rows of docs/explanation/promises.md that rows of the source name, by their first column."""
    parts: Mapping[str, list[dict[str, list[str]]]] = yaml.safe_load(SOURCE.read_text())
    return [name for part in parts.values() for row in part for name in row.get("rows", ())]


def _named(name: str) -> tuple[TestFunction, ...]:
    place, _, function = name.partition("::")
    return tuple(test for test in functions() if test.place == place and function in ("", test.name))


def _proof(row: Mapping[str, object]) -> Proof:
    tests = tuple(test for name in _names(row) for test in _named(name))
    shown = tuple(_shown(name, _named(name)) for name in _names(row))
    commands = tuple(row["commands"])  # type: ignore[arg-type]
    return Proof(str(row["promise"]), tests, shown, commands, str(row.get("never", "")))


def _shown(name: str, tests: tuple[TestFunction, ...]) -> str:
    place, _, function = name.partition("::")
    what = function.removeprefix("test_").replace("_", " ") if function else f"all {len(tests)} tests"
    return f"`{place}`: {what}" + (" (in `make soak`)" if all(test.soak for test in tests) else "")


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
    counts = Counter((test.level, test.soak) for test in functions())
    yield from (
        "## Tests by how real their parts are",
        "",
        "| parts | test functions | run by | others, in `make soak` alone |",
    )
    yield "|---|---|---|---|"
    runs = {"pure": "`make check`", "lab": "`make test`, last part"}
    for level, words in WORDS.items():
        yield f"| {words} | {counts[level, False]} | {runs.get(level, '`make slow`')} | {counts[level, True]} |"
    yield from ("", "Some functions of the second column also have parameters that run only in `make soak`.", "")


def _part(part: str, rows: list[Proof]) -> Iterator[str]:
    yield from (
        f"## {HEADS[part]}",
        "",
        "| promise | proved by | parts | never tried on the real thing |",
        "|---|---|---|---|",
    )
    for row in rows:
        commands = [f"`{each}`" for each in row.commands]
        yield f"| {row.promise} | {'<br>'.join([*row.shown, *commands])} | {row.level()} | {row.never} |"
    yield ""
