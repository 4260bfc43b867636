"""No free-form word of a spec, hosts file or people file has a meaning for Ansible, a shell, a command line or a line-based file.

The test walks the models, so a new field without a pattern fails here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pydantic import TypeAdapter

from cluster.check import check
from cluster.document import parse
from cluster.pools import Host
from cluster.spec import Cluster, ClusterSpec
from cluster.validate import validate
from tests.cluster.walking import LEAVES, SAMPLES, takes

HOSTILE = (
    "{{ lookup('pipe', 'touch /tmp/ran') }}",
    "{% for x in cycler.__init__.__globals__ %}{% endfor %}",
    "$(touch /tmp/ran)",
    "a\nExecStartPre=/usr/bin/touch /tmp/ran",
)
"""Refused anywhere in a text."""
AT_THE_BEGINNING = "-oProxyCommand=touch /tmp/ran"
SPECIAL = '\n\r\x00\x1b\u202e`${}"\\;|<>'
"""Characters with a meaning for a shell, a template, systemd, nftables, swanctl, FRR, dnsmasq or a terminal."""

OF_LDAP = (".tenancy.directory.ldap", '\\";|<>')
"""Fields with special characters of LDAP, which only ldap3 reads."""


def spoilt(adapter: TypeAdapter[Any], hostile: str) -> Iterator[str]:
    """Yield a text alone, and inside everything that a field accepts."""
    yield hostile
    for sample in (sample for sample in SAMPLES if takes(adapter, sample)):
        yield from (
            hostile + sample,
            sample + hostile,
            sample[:1] + hostile + sample[1:],
            sample[:-1] + hostile + sample[-1:],
        )


def one_worker(**changes: Any) -> dict[str, Any]:
    worker = {"name": "w", "rack": "r1", "address": "10.78.1.11", **changes}
    return {"hosts_by_pool": {"workers": (Host.model_validate(worker),)}}


# Fields whose words a rule of cluster.check refuses with its own message, and how to set each.
RULED: dict[str, Callable[[str], dict[str, Any]]] = {
    ".kubernetes.version": lambda text: {"changes": {"kubernetes": {"version": text}}},
    ".pools{}.labels{key}": lambda text: {"changes": {"pools": {"workers": {"labels": {text: "x"}}}}},
    ".pools{}.labels{}": lambda text: {"changes": {"pools": {"workers": {"labels": {"x": text}}}}},
    ".pools{}.taints[].key": lambda text: {
        "changes": {"pools": {"workers": {"taints": [{"key": text, "effect": "NoSchedule"}]}}}
    },
    ".pools{}.taints[].value": lambda text: {
        "changes": {"pools": {"workers": {"taints": [{"key": "x", "value": text, "effect": "NoSchedule"}]}}}
    },
    ".artefacts.sha256{key}": lambda text: {"changes": {"artefacts": {"sha256": {text: "0" * 64}}}},
    ".artefacts.own_builds{key}": lambda text: {"changes": {"artefacts": {"own_builds": {text: "0" * 64}}}},
    ".hosts[].mac": lambda text: one_worker(mac=text),
    ".hosts[].links{}.mac": lambda text: one_worker(links={"ens1": {"mac": text}}),
}


def test_every_field_accepts_one_of_the_samples() -> None:
    assert len(LEAVES) > 150
    assert [path for path, adapter in LEAVES.items() if not any(takes(adapter, each) for each in SAMPLES)] == []
    assert set(RULED) <= set(LEAVES)


@pytest.mark.parametrize("hostile", [*HOSTILE, AT_THE_BEGINNING])
def test_no_field_accepts_text_that_something_would_execute(hostile: str) -> None:
    def texts(adapter: TypeAdapter[Any]) -> Iterator[str]:
        return iter((hostile,)) if hostile == AT_THE_BEGINNING else spoilt(adapter, hostile)

    free = {path for path, adapter in LEAVES.items() if any(takes(adapter, text) for text in texts(adapter))}
    assert free <= set(RULED)


def test_no_field_accepts_a_special_character() -> None:
    free: dict[str, str] = {}
    for path, adapter in LEAVES.items():
        accepted = "".join(each for each in SPECIAL if any(takes(adapter, text) for text in spoilt(adapter, each)))
        allowed = OF_LDAP[1] if path.startswith(OF_LDAP[0]) else ""
        if path not in RULED and set(accepted) - set(allowed):
            free[path] = accepted
    assert free == {}


def test_no_field_accepts_text_that_looks_like_an_option() -> None:
    free = {
        path: text
        for path, adapter in LEAVES.items()
        for text in (f"-{sample}" for sample in ("a", *SAMPLES) if takes(adapter, sample))
        if takes(adapter, text)
    }
    assert set(free) <= set(RULED), free


@pytest.mark.parametrize("path", RULED)
def test_rules_refuse_what_types_accept(path: str, build: Callable[..., Cluster]) -> None:
    for hostile in (*HOSTILE, AT_THE_BEGINNING, "-a", *(f"a{letter}b" for letter in SPECIAL)):
        refused = [problem.code for problem in check(build(**RULED[path](hostile))) if problem.is_error]
        assert refused, (path, hostile)


def test_the_subject_of_a_gateway_s_certificate_is_one_subject_and_no_wildcard() -> None:
    """For strongSwan, * as a part matches any certificate of the CA ("Identity Parsing" of its documentation)."""
    subject = LEAVES[".sites{}.vpn.routers{}.certificate.names[]"]
    for name in ("CN=vpn-0a.endpoint-0", "C=DE, O=Müller & Co. (IT),CN=O'Hara", "C=US, ST=WA, O=Amazon.com, CN=a b"):
        assert takes(subject, name), name
    for name in ("CN=*", "C=*, O=Example, CN=a", "C=US, CN=*", "%any", "*", "CN= a", "CN=a ", "CN=a,, O=b"):
        assert not takes(subject, name), name


def test_a_message_has_rule_and_hint_and_cuts_long_values() -> None:
    spec = f'name: a\ncontrol_plane: {{machine: "{"{" * 900}"}}\nsites: {{s: {{ssh: {{user: -oA=b}}}}}}\n'
    problems = {problem.path: problem for problem in validate(ClusterSpec, parse(spec, "x.yaml")).problems}
    assert len(problems["control_plane.machine"].message) < 250
    assert problems["sites.s.ssh.user"].code == "CFG-030"
    assert "write a user that can log in over SSH, for example root" in problems["sites.s.ssh.user"].hint
