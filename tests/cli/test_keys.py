"""`keys`: what it refuses before it looks at anything."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from cli.failures import explain
from operations.keys import kubelets, pods
from tests.cli.terminal import Menagerie


@pytest.mark.parametrize("verb", ["rotate"])
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


def test_a_rotation_that_ends_for_an_operator_to_go_on_has_a_word_for_machines() -> None:
    again = "./menagerie keys rotate lab kubernetes-ca"
    silent = kubelets.late([kubelets.Said("w1", False, "")], kubelets.Needs(("api",), frozenset({"x"})))
    old = (pods.Late("kube-system", "Deployment", "coredns", ("coredns-1",)),)
    told = [
        explain(kubelets.behind("lab", silent, again)),
        explain(pods.behind(old, datetime(2026, 7, 1, tzinfo=UTC), again)),
    ]
    assert [(each.kind, each.exit_code) for each in told if each] == [("kubelets-behind", 1), ("pods-behind", 1)]
    assert all(again in each.text for each in told if each)
