"""Changes behind the engine's back: which, and that nothing of them stays."""

from __future__ import annotations

from sandbox.simcloud.world import Record, World
from stacks.validation.drift import Drift, drifted


def record(type_: str, name: str, uses: tuple[Record, ...] = (), **inputs: object) -> Record:
    urn = f"urn:pulumi:s::p::{type_}::{name}"
    return Record(type_, f"id-{name}", urn, "r", inputs, {**inputs, "id": name}, uses=tuple(one.key for one in uses))


def world() -> tuple[World, dict[str, Record]]:
    network = record("net", "network", labels={"a": "b"})
    made = {
        "network": network,
        "first": record("sub", "first", (network,), tags={}),
        "second": record("sub", "second", (network,), tags={"a": "b"}),
        "bare": record("bare", "bare", (network,)),
        "text": record("text", "text", description="for people"),
        "kept": record("a-kept", "kept"),
    }
    found = World()
    for one in made.values():
        found.put(one)
    return found, made


def test_one_of_each_type_is_changed_and_one_that_nothing_needs_is_deleted() -> None:
    clouds, made = world()
    with drifted(clouds, list(clouds), {made["kept"].urn}) as drifts:
        assert {(one.urn.rpartition("::")[2], one.property) for one in drifts} == {
            ("network", "labels"),
            ("first", "tags"),
            ("text", "description"),
            ("bare", ""),
        }
        network = clouds.get("net", "id-network")
        assert network
        assert network.inputs["labels"] == {"a": "b", "changed": "by-hand"}
        assert clouds.get("bare", "id-bare") is None
        assert clouds.get("a-kept", "id-kept") is made["kept"]
    assert {one.key: one for one in clouds} == {one.key: one for one in made.values()}


def test_what_the_stack_does_not_know_is_left_alone() -> None:
    clouds, made = world()
    with drifted(clouds, [made["text"]], ()) as drifts:
        assert [str(one) for one in drifts] == ["text text: description"]


def test_a_change_says_what_it_is() -> None:
    assert str(Drift("urn:pulumi:s::p::net::a", "net")) == "net a as a whole"
