"""The clouds' tables: every token and property in them exists, and every message has known fields."""

from __future__ import annotations

import importlib
import inspect
import json
import re
import string
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox.simcloud.rules import Cloud, Reason, ResourceType
from sandbox.simcloud.server import CLOUDS

COMMON = {"noun", "code", "type", "id", "name", "region", "account"}
# The fields that refusals.py and simulation.py add for each reason.
FIELDS = {
    Reason.BAD_VALUE: {"path", "value", "words"},
    Reason.BAD_NAME: {"property", "words", "length", "longest", "pattern"},
    Reason.TAKEN: {"parent"},
    Reason.FULL: {"most", "have"},
    Reason.MISSING: {"path", "value", "by"},
    Reason.GONE: {"value"},
    Reason.ELSEWHERE: {"path", "value", "by", "its_region"},
    Reason.BAD_RANGE: {"value", "shortest", "longest"},
    Reason.OUTSIDE: {"value", "parent", "ranges"},
    Reason.OVERLAP: {"value", "existing", "other", "other_name", "its_region"},
    Reason.FIXED: {"path", "value", "users"},
    Reason.PROTECTED: {"path"},
    Reason.IN_USE: {"value", "user", "users"},
    Reason.NO_ZONE: {"zone", "zones", "wrong"},
    Reason.NO_MACHINE: {"zone", "zones", "machine", "wrong"},
    Reason.THROTTLED: {"verb"},
}


def _classes(package: str) -> dict[str, tuple[str, str]]:
    """Return type token -> module and class of the SDK."""
    module = importlib.import_module(f"pulumi_{package.replace('-', '_')}")
    text = Path(str(module.__file__)).read_text()
    listed = re.search(r'resource_modules="""(.*?)"""', text, re.DOTALL)
    assert listed
    return {token: (entry["fqn"], name) for entry in json.loads(listed[1]) for token, name in entry["classes"].items()}


def _properties(class_: type) -> set[str]:
    getters = {name: member.fget for name, member in inspect.getmembers(class_) if isinstance(member, property)}
    return {getattr(getter, "_pulumi_name", name) for name, getter in getters.items()}


def _named_properties(type_: ResourceType) -> Iterator[str]:
    """Yield the top-level properties of everything in a row."""
    paths = [*type_.where, *type_.replace_on, *type_.replace_if, *type_.fixed, *type_.protected_by]
    paths += [reference.path for reference in type_.references]
    paths += [type_.naming.property] if type_.naming else []
    yield from {re.split(r"[.\[]", path)[0] for path in paths} - {"*"}


@pytest.mark.parametrize("cloud", CLOUDS.values(), ids=lambda cloud: cloud.name)
def test_every_type_and_property_of_a_row_exists_in_the_sdk(cloud: Cloud) -> None:
    classes = _classes(cloud.package)
    wrong = []
    for type_ in cloud.types.values():
        module, name = classes[type_.token]
        resource = getattr(importlib.import_module(module), name)
        sdk_module = sys.modules[resource.__module__]
        # InitArgs if a nested type has the plain name.
        inputs = _properties(getattr(sdk_module, f"{name}InitArgs", None) or getattr(sdk_module, f"{name}Args"))
        outputs = _properties(resource)
        wrong += [f"{type_.token} {property_}" for property_ in set(_named_properties(type_)) - inputs]
        wrong += [f"{type_.token} {property_}" for property_ in set(type_.recomputed) - outputs]
    assert wrong == []


@pytest.mark.parametrize("cloud", CLOUDS.values(), ids=lambda cloud: cloud.name)
def test_referenced_types_have_rules(cloud: Cloud) -> None:
    referenced = [
        (f"{type_.token} {reference.path}", token)
        for type_ in cloud.types.values()
        for reference in type_.references
        for token in reference.types
    ]
    assert referenced
    assert [(place, token) for place, token in referenced if token not in cloud.types] == []


@pytest.mark.parametrize("cloud", CLOUDS.values(), ids=lambda cloud: cloud.name)
def test_a_cloud_has_a_message_for_every_reason_and_uses_only_known_fields(cloud: Cloud) -> None:
    assert set(cloud.says) == set(Reason) == set(FIELDS)
    sayings = [pair for says in (cloud.says, *(type_.says for type_ in cloud.types.values())) for pair in says.items()]
    wrong = [
        f"{reason.name}: {field}"
        for reason, saying in sayings
        for text in (saying.text, saying.way_out)
        for _, field, _, _ in string.Formatter().parse(text)
        if field is not None and field not in COMMON | FIELDS[reason]
    ]
    assert wrong == []
