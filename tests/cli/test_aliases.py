"""Spellings of the last release still work and print the new spelling. Delete this file together with `cli.aliases`."""

from __future__ import annotations

import shlex
from typing import Any

import pytest

from cli import aliases
from cli.main import named
from cli.verbs import table
from tests.cli.terminal import Menagerie

SPELLINGS = {
    "autoscaler explain jaguar vision/train-0": "autoscaler plan jaguar vision/train-0",
    "configure lab --batch 5% --max-failures 10": "configure lab --parallel 5% --max-failures 10",
    "configure lab --batch=5%": "configure lab --parallel=5%",
    "configure lab --check --diff": "configure lab --dry-run --diff",
    "controllers image --to image": "controllers image --output image",
    "controllers show jaguar --json": "status jaguar --json controllers",
    "etcd backups jaguar": "status jaguar backups",
    "etcd backups jaguar main --all": "status jaguar --limit main --last=1000000 backups",
    "etcd backups --json jaguar events": "status --json jaguar --limit events backups",
    "etcd state jaguar --json": "status jaguar --json etcd",
    "expander prices horus": "show prices horus",
    "flows jaguar --json": "show flows jaguar --json",
    "keys rotate lab service-account --wait": "keys rotate lab service-account --wait-for-tokens",
    "keys rotate lab service-account --wait --yes": "keys rotate lab service-account --wait-for-tokens --yes",
    "keys status lab": "status lab keys",
    "links check jaguar --limit 'gpu-00*' --parallel 8 --wait 35": "status jaguar --limit 'gpu-00*' --parallel 8 --settle 35 links",
    "machines check jaguar --limit r07": "status jaguar --limit r07 machines",
    "machines install jaguar --batch 2": "machines install jaguar --parallel 2",
    "operations lab --last 100": "status lab --last 100 operations",
    "policies": "show policies",
    "preview lab --diff --limit worker-1": "up --dry-run lab --diff --limit worker-1",
    "reboot lab --at-once 4 --back-timeout 20m": "reboot lab --parallel 4 --ready-timeout 20m",
    "reboot lab --check": "reboot lab --dry-run",
    "schema": "show schema",
    "schema hosts": "show schema hosts",
    "status --watch": "status --watch=5",
    "status --watch --every 60": "status --watch 60",
    "status lab --every=60 --watch --json": "status lab --watch=60 --json",
    "status lab --watch --json": "status lab --watch=5 --json",
    "status jaguar links --wait 35": "status jaguar links --settle 35",
    "tenancy capacity jaguar --evict --watch 30 --yes": "tenancy sync --hosts jaguar --evict --watch 30 --yes",
    "tenancy show jaguar": "status jaguar tenancy",
    "topology ibis -o ibis.html": "show topology ibis -o ibis.html",
    "upgrade lab --at-once 8": "upgrade lab --parallel 8",
    "validate --jobs 1": "validate --parallel 1",
    "validate -j 2 lab": "validate --parallel 2 lab",
    "validate -j2": "validate --parallel=2",
    "vpn configure jaguar --check": "vpn configure jaguar --dry-run",
    "vpn show jaguar": "show vpn jaguar",
}
"""Former -> current command line."""


def parsed(line: list[str]) -> dict[str, Any]:
    """Return a verb's parsed parameters."""
    verb = table.chosen(line)
    assert verb
    with named(verb.name).make_context(verb.name, line[len(verb.name.split()) :]) as context:
        return dict(context.params)


@pytest.mark.parametrize(("then", "now"), SPELLINGS.items())
def test_a_former_spelling_becomes_the_current_one_and_parses(then: str, now: str) -> None:
    line, warning = aliases.current(shlex.split(then))
    assert line == shlex.split(now)
    assert parsed(line)
    assert f"`menagerie {' '.join(shlex.split(then))}` is now `menagerie {' '.join(line)}`" in warning
    assert warning.count("\n") == 0


def test_every_former_verb_and_option_is_in_the_table() -> None:
    lines = [shlex.split(then) for then in SPELLINGS]
    for verb in aliases.VERBS:
        assert any(line[: len(verb.split())] == verb.split() for line in lines), verb
    for verb, renamed in aliases.OPTIONS.items():
        for option in renamed:
            own = [line for line in lines if line[: len(verb.split())] == verb.split()]
            assert any(option in (word, word.partition("=")[0]) for line in own for word in line), (verb, option)


@pytest.mark.parametrize(
    "now", [*SPELLINGS.values(), "check lab", "keys rotate lab encryption --wait 5m", "--help", "capacity"]
)
def test_a_current_spelling_is_unchanged_without_a_warning(now: str) -> None:
    assert aliases.current(shlex.split(now)) == (shlex.split(now), "")


def test_the_warning_goes_to_standard_error_and_json_stays_valid(menagerie: Menagerie) -> None:
    ran = menagerie("flows", "lab", "--json")
    assert (ran.code, ran.json["cluster"]) == (0, "lab")
    (warning,) = ran.err.splitlines()
    assert warning.startswith("deprecated: `menagerie flows lab --json` is now `menagerie show flows lab --json`; ")
