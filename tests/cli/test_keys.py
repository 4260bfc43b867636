"""`keys`: help page, refusals and failures."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from cli.failures import explain
from operations.keys import kubelets, pods
from tests.cli.terminal import Menagerie


@pytest.mark.parametrize("verb", ["rotate"])
def test_the_help_of_a_verb_has_examples_that_fit_80_columns(
    menagerie: Menagerie, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    page = menagerie("keys", verb, "--help")
    _, examples = page.out.split("Examples")
    assert page.code == 0
    lines = [line.strip() for line in examples.splitlines() if line.strip()]
    assert [line for line in lines if not line.startswith(f"./menagerie keys {verb}")] == []


def test_an_unknown_ring_is_refused_with_the_list_of_rings(menagerie: Menagerie) -> None:
    refused = menagerie("keys", "rotate", "lab", "encrypton")
    assert refused.code == 2
    assert "no key ring encrypton; write one of encryption, service-account, etcd-main-ca" in refused.err


def test_a_rotation_that_needs_an_operator_has_an_error_code() -> None:
    again = "./menagerie keys rotate lab kubernetes-ca"
    silent = kubelets.late([kubelets.KubeletReport("w1", False, "")], kubelets.Needs(("api",), frozenset({"x"})))
    old = (pods.LaggingPods("kube-system", "Deployment", "coredns", ("coredns-1",)),)
    failures = [
        explain(kubelets.behind("lab", silent, again)),
        explain(pods.behind(old, datetime(2026, 7, 1, tzinfo=UTC), again)),
    ]
    assert [(failure.kind, failure.exit_code) for failure in failures if failure] == [
        ("kubelets-behind", 1),
        ("pods-behind", 1),
    ]
    assert all(again in failure.text for failure in failures if failure)
