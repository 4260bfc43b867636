"""Every verb: whether it changes something, whether it asks, and that an option means the same in every verb."""

from __future__ import annotations

import inspect
from collections import defaultdict
from typing import Any

import pytest

from cli.main import named
from cli.verbs import table
from tests.cli.terminal import Menagerie

ASKS = """
    autoscaler run, configure, controllers apply, controllers remove, destroy, etcd defragment, etcd forget,
    etcd recover-space, etcd replace, etcd restore, etcd roll, keys rotate, machines install, reboot, repair, state move,
    tenancy sync, unlock, up, upgrade, vpn configure
"""
"""Verbs that change something and ask first: they take --yes."""
ASKS_NOTHING = {
    "bundle": "writes the file in its options, and locks of artefacts that git shows",
    "controllers image": "writes and pushes only where its options say",
    "etcd backup": "adds a backup",
    "init": "adds a folder, and changes none that exists",
    "etcd move-leader": "the etcd keeps serving",
    "machines render": "writes to the folder in its options",
    "mirror push": "adds files of pinned versions, and is asked with --dry-run",
    "roce test": "loads the fabric, but changes no setting",
    "secret": "asks for the secret itself",
    "verify": "runs in CI; --list says what each proof does",
    "vpn request": "keeps existing keys",
}
"""Verbs that change something without asking -> the reason."""
LOOKS = """
    audit, autoscaler plan, autoscaler simulate, bill, capacity, ceph facts, ceph render, check, doctor, expander run, explain,
    kubeconfig, list, mirror serve, roce plan, show, status, validate, web
"""
"""Verbs that change nothing except a file named in their options."""
HOLDS = """
    configure, controllers apply, controllers remove, destroy, etcd defragment, etcd forget, etcd move-leader,
    etcd recover-space, etcd replace, etcd restore, etcd roll, keys rotate, machines install, reboot, repair, state move,
    tenancy sync, up, upgrade
"""
"""Verbs that lock the cluster, and so can wait for it. `up` and `destroy` continue if the bucket of records does not answer."""
TWO_SENSES = {"--from": "a backend in `state move`, the first day in `bill`, where --from and --to belong together"}
"""Options that mean one thing in one verb and another in another -> why."""
EVERY = [verb.name for verb in table.every()]


def names(table: str) -> set[str]:
    return {" ".join(name.split()) for name in table.split(",")}


def options(name: str) -> dict[str, Any]:
    return {
        option: param
        for param in named(name).params
        for option in (*param.opts, *param.secondary_opts)
        if option[0] == "-"
    }


OPTIONS = {name: options(name) for name in EVERY}


def test_every_verb_is_in_one_table_and_there_are_about_fifty() -> None:
    looks, asks, never = names(LOOKS), names(ASKS), set(ASKS_NOTHING)
    assert sorted([*looks, *asks, *never]) == sorted(EVERY)
    assert {verb.name for verb in table.every() if verb.changes} == asks | never
    assert len(EVERY) <= 52


@pytest.mark.parametrize("name", sorted(names(ASKS) | set(ASKS_NOTHING)))
def test_every_verb_that_changes_something_has_a_dry_run_and_asks_unless_listed(name: str) -> None:
    assert "--dry-run" in OPTIONS[name]
    assert ("--yes" in OPTIONS[name]) is (name in names(ASKS))


@pytest.mark.parametrize("name", sorted(names(LOOKS)))
def test_verbs_that_only_look_have_no_dry_run_and_do_not_ask(name: str) -> None:
    assert {"--dry-run", "--yes"} & set(OPTIONS[name]) == set()


def test_every_verb_that_locks_the_cluster_has_wait_and_without_record() -> None:
    assert {name for name in EVERY if "--wait" in OPTIONS[name]} == names(HOLDS)
    assert {name for name in EVERY if "--without-record" in OPTIONS[name]} == names(HOLDS) - {"up", "destroy"}


def test_an_option_has_the_same_help_type_and_metavar_in_every_verb() -> None:
    uses: dict[str, dict[tuple[object, ...], list[str]]] = defaultdict(lambda: defaultdict(list))
    for name, params in OPTIONS.items():
        for option, param in params.items():
            if option not in ("--help", "-h"):
                kind = (
                    param.help,
                    param.metavar,
                    param.is_flag,
                    param.multiple,
                    str(param.type_descriptor.annotation),
                    tuple(param.opts),
                )
                uses[option][kind].append(name)
    assert {option: dict(kinds) for option, kinds in uses.items() if len(kinds) > 1}.keys() == TWO_SENSES.keys()


def test_no_verb_has_a_former_name_of_an_option() -> None:
    former = {"--check", "--batch", "--at-once", "--jobs", "--every", "--back-timeout", "--to"}
    own = {"bill": {"--to"}}  # the last day: --to was a folder of `controllers image`
    assert {
        name: some for name, params in OPTIONS.items() if (some := former & set(params) - own.get(name, set()))
    } == {}


def test_every_line_of_the_help_page_fits_80_columns(menagerie: Menagerie, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    page = menagerie("--help")
    for group, listed in table.GROUPS.items():
        assert f"─ {group} ─" in page.out
        for verb in listed:
            assert f"│ {verb.name:<19}  {verb.says} " in page.out, verb.name


@pytest.mark.parametrize("name", EVERY)
def test_the_help_of_a_verb_has_examples_of_it_that_fit_80_columns(
    menagerie: Menagerie, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    page = menagerie(*name.split(), "--help")
    assert page.code == 0
    text, _, examples = page.out.partition("Examples")
    assert inspect.cleandoc(str(named(name).help)).splitlines()[0].split()[0] in text
    lines = [line.strip() for line in examples.partition("A line of a trace")[0].splitlines() if line.strip()]
    assert lines
    assert [line for line in lines if not line.startswith((f"./menagerie {name}", ".menagerie/bin/kubectl"))] == []


@pytest.mark.parametrize("noun", sorted(table.NOUNS))
def test_a_noun_lists_its_verbs(menagerie: Menagerie, noun: str) -> None:
    page = menagerie(noun, "--help")
    own = [name.split()[1] for name in EVERY if name.split()[0] == noun]
    assert own
    assert [verb for verb in own if f"│ {verb} " not in page.out] == []


@pytest.mark.parametrize("given", ["90", "90s", "1.5m"])
def test_a_time_is_plain_seconds_or_has_a_unit(given: str) -> None:
    from cli.options import seconds

    assert seconds(given) == 90.0


@pytest.mark.parametrize(
    "words",
    [
        ("status", "lab", "--watch", "soon"),
        ("repair", "lab", "--watch", "0.2"),
        ("reboot", "lab", "--drain-timeout", "5x"),
        ("up", "lab", "--wait", "-1"),
    ],
)
def test_an_invalid_time_is_refused_with_the_name_of_its_option(menagerie: Menagerie, words: tuple[str, ...]) -> None:
    ran = menagerie(*words)
    assert (ran.code, ran.out) == (2, "")
    assert words[-2] in ran.err
