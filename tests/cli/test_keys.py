"""`keys`: what it refuses before it looks at anything."""

from __future__ import annotations

import json

import pytest

from tests.cli.conftest import Menagerie


@pytest.mark.parametrize("verb", ["status", "rotate"])
def test_the_help_of_a_verb_has_examples_of_it_that_fit_a_terminal(
    menagerie: Menagerie, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    page = menagerie("keys", verb, "--help")
    _, examples = page.out.split("Examples")
    assert page.code == 0
    lines = [line.strip() for line in examples.splitlines() if line.strip()]
    assert [line for line in lines if not line.startswith(f"./menagerie keys {verb}")] == []


def test_a_ring_that_there_is_not_is_refused_with_those_that_there_are(menagerie: Menagerie) -> None:
    refused = menagerie("keys", "rotate", "lab", "encrypton")
    assert refused.code == 2
    assert "no key ring encrypton; there are: encryption, service-account, etcd-main-ca" in refused.err


def test_a_ring_that_nothing_rotates_yet_is_refused_with_the_reason(menagerie: Menagerie) -> None:
    refused = menagerie("keys", "rotate", "lab", "kubernetes-ca", "--json")
    assert refused.code == 2
    assert json.loads(refused.out)["error"]["code"] == "not-rotated"
    assert "docs/keys.md" in refused.err
