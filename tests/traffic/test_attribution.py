"""Who has which address: only what the node and the API agree about."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from menagerie_traffic.api import Pod
from menagerie_traffic.attribution import Held, attributed, change, unattributed
from menagerie_traffic.reservations import Sandbox

A = Pod("uid-a", "team-a", "web", False)
B = Pod("uid-b", "team-b", "web", False)
PODS = {each.uid: each for each in (A, B)}


def of(pod: Pod, sandbox: str) -> Sandbox:
    return Sandbox(sandbox, pod.uid, pod.namespace, pod.name)


def test_an_address_belongs_to_the_namespace_of_its_sandboxs_pod() -> None:
    result = attributed({"10.0.0.5": of(A, "s1"), "10.0.0.6": of(B, "s2")}, PODS, {})
    assert result.held == {"10.0.0.5": Held("s1", "team-a"), "10.0.0.6": Held("s2", "team-b")}
    assert not result.waiting


def test_an_address_that_is_used_again_is_never_the_former_pods() -> None:
    """The API may still list the former pod, and not know the new one yet."""
    before = {"10.0.0.5": Held("s1", "team-a")}
    for new in (Sandbox("s2"), Sandbox("s2", "uid-new", "team-c", "x")):
        result = attributed({"10.0.0.5": new}, PODS, before)
        assert (result.held, result.waiting) == ({}, {"10.0.0.5"})
    assert attributed({"10.0.0.5": of(B, "s2")}, PODS, before).held == {"10.0.0.5": Held("s2", "team-b")}


def test_a_freed_address_is_nobodys() -> None:
    assert attributed({}, PODS, {"10.0.0.5": Held("s1", "team-a")}) == ({}, frozenset())


def test_a_pod_that_the_api_has_forgotten_keeps_its_address_until_its_sandbox_is_gone() -> None:
    before = {"10.0.0.5": Held("s1", "team-a")}
    assert attributed({"10.0.0.5": of(A, "s1")}, {}, before).held == before
    assert attributed({"10.0.0.5": of(A, "s1")}, None, before).held == before


@pytest.mark.parametrize(
    "pods", [None, {}, {"uid-a": A._replace(namespace="other")}, {"uid-a": A._replace(host_network=True)}]
)
def test_without_both_witnesses_an_address_waits(pods: dict[str, Pod] | None) -> None:
    assert attributed({"10.0.0.5": of(A, "s1")}, pods, {}) == ({}, {"10.0.0.5"})


def test_runtimes_that_do_not_pass_the_uid_are_matched_by_name() -> None:
    sandbox = Sandbox("s1", "", "team-a", "web")
    assert attributed({"10.0.0.5": sandbox}, PODS, {}).held == {"10.0.0.5": Held("s1", "team-a")}


def test_a_moved_address_is_removed_and_added() -> None:
    assert change({"a": "x", "b": "y", "c": "z"}, {"a": "x", "b": "w", "d": "v"}) == (["b", "c"], {"b": "w", "d": "v"})


def test_pods_in_the_hosts_network_are_counted_by_namespace() -> None:
    hosts = [Pod(str(each), "kube-system", str(each), True) for each in range(2)]
    assert unattributed([*PODS.values(), *hosts]) == {"kube-system": 2}


_addresses = st.sampled_from(["10.0.0.1", "10.0.0.2", "10.0.0.3"])
_names = st.sampled_from(["a", "b", "c"])


@given(st.lists(st.tuples(st.sampled_from(["start", "end", "know", "forget"]), _addresses, _names), max_size=40))
def test_whatever_happens_no_address_is_given_to_anybody_but_its_sandboxs_pod(
    steps: list[tuple[str, str, str]],
) -> None:
    """Pods start and end, addresses move at once, and the API knows of it sooner, later or never."""
    true: dict[str, tuple[str, str]] = {}
    known: dict[str, Pod] = {}
    held: dict[str, Held] = {}
    for number, (what, address, namespace) in enumerate(steps):
        if what == "start":
            true[address] = (f"{number}", namespace)
        elif what == "end":
            true.pop(address, None)
        elif what == "know":
            known |= {uid: Pod(uid, owner, "n", False) for at, (uid, owner) in true.items() if at == address}
        else:
            known = {uid: pod for uid, pod in known.items() if pod.namespace != namespace}
        sandboxes = {at: Sandbox(f"s{uid}", uid, owner, "n") for at, (uid, owner) in true.items()}
        held = attributed(sandboxes, known, held).held
        assert all(each.namespace == true[at][1] for at, each in held.items())
