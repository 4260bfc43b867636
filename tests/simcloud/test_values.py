"""Property values and differences between them."""

from __future__ import annotations

from typing import Any

import pytest

from sandbox.simcloud.changes import changes
from sandbox.simcloud.values import (
    Secret,
    Unknown,
    at,
    contains_any,
    from_wire,
    plain,
    recognised,
    sealed,
    to_wire,
    unsealed,
)

VALUES = {
    "text": "a",
    "number": 1,
    "part": 0.5,
    "yes": True,
    "nothing": None,
    "list": [1, {"deep": Secret(["x", {"y": "z"}])}],
    "unknown": Unknown(),
    "unknown-number": Unknown("3eeb2bf0-c639-47a8-9e75-3b44932eb421"),
}


def test_values_pass_the_wire_unchanged() -> None:
    assert from_wire(to_wire(VALUES)) == VALUES


def test_a_stored_secret_is_recognised_but_not_revealed() -> None:
    stored = sealed({"a": Secret("xyzzy"), "b": [Secret({"c": "xyzzy"})]})
    assert "xyzzy" not in str(stored)
    again = unsealed(stored)
    current = {"a": Secret("xyzzy"), "b": [{"c": Secret("xyzzy")}]}
    assert recognised(again, current) == {"a": Secret("xyzzy"), "b": [Secret({"c": "xyzzy"})]}
    changed = recognised(again, {"a": Secret("plugh")})
    assert "plugh" not in str(changed) and changed["a"].value.startswith("changed")
    assert sealed(again) == stored


def test_values_that_contain_a_secret_are_detected() -> None:
    assert contains_any({"tagsAll": {"motto": "say xyzzy"}}, {"xyzzy"})
    assert not contains_any({"tagsAll": {"motto": "say nothing"}}, {"xyzzy"})


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("name", ["n"]),
        ("none", []),
        ("subnets[]", ["a", "b"]),
        ("configs[].subnet.id", ["s", "t"]),
        ("configs.subnet", []),
        ("name.deeper", []),
    ],
)
def test_a_path_leads_to_values(path: str, expected: list[str]) -> None:
    inputs = {
        "name": "n",
        "none": None,
        "subnets": ["a", "b"],
        "configs": [{"subnet": {"id": "s"}}, {}, {"subnet": {"id": "t"}}],
    }
    assert list(at(inputs, path)) == expected


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ({"a": 1}, {"a": 1}, []),
        ({"a": 1}, {"a": 2}, [("a", "update")]),
        ({}, {"a": {"b": 1}}, [("a.b", "add")]),
        ({"a": [1, 2]}, {"a": [1]}, [("a[1]", "delete")]),
        ({"tags": {"a.b": 1, 'c"d': 1}}, {}, [('tags["a.b"]', "delete"), ('tags["c\\"d"]', "delete")]),
        ({"a": None}, {"b": [], "c": {}}, []),
        ({"a": {"b": 1}}, {"a": Unknown()}, [("a", "update")]),
        ({"a": Secret("x")}, {"a": "x"}, []),
        ({"__defaults": ["name"]}, {}, []),
    ],
)
def test_changes_are_reported_by_path(old: Any, new: Any, expected: list[tuple[str, str]]) -> None:
    assert [(change.path, change.kind.value) for change in changes(old, new)] == expected


@pytest.mark.parametrize(
    ("patterns", "is_within"),
    [
        (["routes[].cidr"], True),
        (["routes"], True),
        (["*"], True),
        (["routes[].cid", "cidr", "routes[].cidr.deeper"], False),
    ],
)
def test_a_pattern_includes_everything_below_it(patterns: list[str], is_within: bool) -> None:
    (change,) = changes({}, {"routes": [{"cidr": "a"}]})
    assert change.is_within(patterns) is is_within


def test_secrets_are_unwrapped() -> None:
    assert plain(VALUES)["list"][1] == {"deep": ["x", {"y": "z"}]}
