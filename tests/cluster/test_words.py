"""No free word of a spec, a hosts file or a file of people means anything to Ansible, a shell, a command line or a file of lines.

The models are walked: a field that is added without a pattern fails here.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator
from enum import StrEnum
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import pytest
from pydantic import BaseModel, TypeAdapter, ValidationError

from cluster.check import check
from cluster.document import parse
from cluster.pools import Host, HostsFile
from cluster.spec import Cluster, ClusterSpec
from cluster.validate import validate
from tenancy.directory.files import PeopleFile

HOSTILE = (
    "{{ lookup('pipe', 'touch /tmp/ran') }}",
    "{% for x in cycler.__init__.__globals__ %}{% endfor %}",
    "$(touch /tmp/ran)",
    "a\nExecStartPre=/usr/bin/touch /tmp/ran",
)
"""Refused wherever they stand in a text."""
AT_THE_BEGINNING = "-oProxyCommand=touch /tmp/ran"
SPECIAL = '\n\r\x00\x1b\u202e`${}"\\;|<>'
"""What a shell, a template, systemd, nftables, swanctl, FRR, dnsmasq or a terminal reads as more than a letter."""

# Something that each field takes; what a field takes is spoilt in every way.
SAMPLES = (
    *("a", "root", "x-1", "eth1a", "m7i.large", "Ready", "10.8.0.1", "10.8.0.0/24", "1.36.4", "2", "64", "10%", "a.example.org"),
    *("https://a.example.org/b", "ldaps://a.example.org", "http://10.8.0.5:8642", "a.example.org:5000", "/data/etcd", "a.yaml"),
    *("0000:1a:00.0", "nvme-SAMSUNG*", "pci=realloc", "ou=a,dc=b", "(a=b)", "C=US, CN=a b", "f" * 64, "02:00:00:00:00:01"),
    "arn:aws:acm:us-east-1:123456789012:certificate/abc",
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAICGTXi7fQMqDwQUUn6SciDSEk7spf23+bIK+GcfgbfcT ops@menagerie",
)  # fmt: skip
OF_LDAP = (".tenancy.directory.ldap", '\\";|<>')
"""Where special characters of LDAP's own stay, for ldap3 alone reads them."""

Leaf = tuple[str, TypeAdapter[Any]]


def leaves(annotation: Any, path: str = "", meta: tuple[Any, ...] = ()) -> Iterator[Leaf]:
    """(path, what validates it) of each field of a model that takes free text, also as a key and in a list."""
    if get_origin(annotation) is Annotated:
        inner, *more = get_args(annotation)
        yield from leaves(inner, path, (*meta, *more))
    elif get_origin(annotation) in (Union, types.UnionType):
        for choice in get_args(annotation):
            yield from leaves(choice, path, meta)
    elif get_origin(annotation) is dict:
        key, value = get_args(annotation)
        yield from leaves(key, f"{path}{{key}}")
        yield from leaves(value, f"{path}{{}}")
    elif get_origin(annotation) is tuple:
        yield from leaves(get_args(annotation)[0], f"{path}[]")
    elif isinstance(annotation, type) and issubclass(annotation, BaseModel):
        for name, field in annotation.model_fields.items():
            own = [each for each in field.metadata if get_origin(field.annotation) not in (tuple, dict)]
            yield from leaves(field.annotation, f"{path}.{name}", tuple(own))
    elif annotation not in (int, bool, float, type(None)) and not _is_chosen(annotation):
        yield path, TypeAdapter(Annotated[annotation, *meta] if meta else annotation)


def _is_chosen(annotation: Any) -> bool:
    return get_origin(annotation) is Literal or (isinstance(annotation, type) and issubclass(annotation, StrEnum))


LEAVES = dict(each for model in (ClusterSpec, HostsFile, PeopleFile) for each in leaves(model))


def takes(adapter: TypeAdapter[Any], text: str) -> bool:
    try:
        adapter.validate_python(text, strict=True)
    except ValidationError:
        return False
    return True


def spoilt(adapter: TypeAdapter[Any], hostile: str) -> Iterator[str]:
    """A text alone, and within everything that a field takes."""
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


# Fields whose words a rule of cluster.check refuses, with words of its own: how each gets a text.
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


def test_every_field_is_tried_with_something_that_it_takes() -> None:
    assert len(LEAVES) > 150
    assert [path for path, adapter in LEAVES.items() if not any(takes(adapter, each) for each in SAMPLES)] == []
    assert set(RULED) <= set(LEAVES)


@pytest.mark.parametrize("hostile", [*HOSTILE, AT_THE_BEGINNING])
def test_no_field_takes_what_something_would_run(hostile: str) -> None:
    def texts(adapter: TypeAdapter[Any]) -> Iterator[str]:
        return iter((hostile,)) if hostile == AT_THE_BEGINNING else spoilt(adapter, hostile)

    free = {path for path, adapter in LEAVES.items() if any(takes(adapter, text) for text in texts(adapter))}
    assert free <= set(RULED)


def test_no_field_takes_a_character_that_means_more_than_itself() -> None:
    free: dict[str, str] = {}
    for path, adapter in LEAVES.items():
        found = "".join(each for each in SPECIAL if any(takes(adapter, text) for text in spoilt(adapter, each)))
        allowed = OF_LDAP[1] if path.startswith(OF_LDAP[0]) else ""
        if path not in RULED and set(found) - set(allowed):
            free[path] = found
    assert free == {}


@pytest.mark.parametrize("path", RULED)
def test_what_a_type_lets_through_a_rule_refuses(path: str, build: Callable[..., Cluster]) -> None:
    for hostile in (*HOSTILE, AT_THE_BEGINNING):
        refused = [problem.code for problem in check(build(**RULED[path](hostile))) if problem.is_error]
        assert refused, (path, hostile)


def test_a_message_says_rule_and_way_out_and_repeats_no_more_than_a_line_has_room_for() -> None:
    spec = f'name: a\ncontrol_plane: {{machine: "{"{" * 900}"}}\nsites: {{s: {{ssh: {{user: -oA=b}}}}}}\n'
    problems = {problem.path: problem for problem in validate(ClusterSpec, parse(spec, "x.yaml")).problems}
    assert len(problems["control_plane.machine"].message) < 250
    assert problems["sites.s.ssh.user"].code == "CFG-030"
    assert "write the user that sshd lets in: root" in problems["sites.s.ssh.user"].hint
