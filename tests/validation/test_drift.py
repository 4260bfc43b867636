"""Changes behind the engine's back: which are made, and that all are undone."""

from __future__ import annotations

from sandbox.simcloud.world import Record, World
from stacks.validation.drift import Drift, drifted


def record(type_: str, name: str, uses: tuple[Record, ...] = (), **inputs: object) -> Record:
    urn = f"urn:pulumi:s::p::{type_}::{name}"
    return Record(type_, f"id-{name}", urn, "r", inputs, {**inputs, "id": name}, uses=tuple(used.key for used in uses))


def world() -> tuple[World, dict[str, Record]]:
    network = record("net", "network", labels={"a": "b"})
    records = {
        "network": network,
        "first": record("sub", "first", (network,), tags={}),
        "second": record("sub", "second", (network,), tags={"a": "b"}),
        "bare": record("bare", "bare", (network,)),
        "text": record("text", "text", description="for people"),
        "kept": record("a-kept", "kept"),
    }
    clouds = World()
    for entry in records.values():
        clouds.put(entry)
    return clouds, records


def test_one_resource_of_each_type_is_changed_and_an_unused_one_is_deleted() -> None:
    clouds, records = world()
    with drifted(clouds, list(clouds), {records["kept"].urn}) as drifts:
        assert {(item.urn.rpartition("::")[2], item.property) for item in drifts} == {
            ("network", "labels"),
            ("first", "tags"),
            ("text", "description"),
            ("bare", ""),
        }
        network = clouds.get("net", "id-network")
        assert network
        assert network.inputs["labels"] == {"a": "b", "changed": "by-hand"}
        assert clouds.get("bare", "id-bare") is None
        assert clouds.get("a-kept", "id-kept") is records["kept"]
    assert {item.key: item for item in clouds} == {item.key: item for item in records.values()}


def test_resources_unknown_to_the_stack_are_left_alone() -> None:
    clouds, records = world()
    with drifted(clouds, [records["text"]], ()) as drifts:
        assert [str(change) for change in drifts] == ["text text: description"]


def test_a_change_describes_itself() -> None:
    assert str(Drift("urn:pulumi:s::p::net::a", "net")) == "net a as a whole"
