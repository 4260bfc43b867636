"""What the types of Azure have in common."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from sandbox.simcloud.azure.words import refused
from sandbox.simcloud.identifiers import digest, guid
from sandbox.simcloud.rules import Call, Naming, ResourceType, Rule
from sandbox.simcloud.values import Properties, at, plain
from sandbox.simcloud.world import Record

TENANT = guid("tenant")
CLIENT = guid("object")
"""The object ID of the principal that runs the engine."""

_NETWORK_WORDS = (
    "It must begin with a word character, and it must end with a word character or with '_'. The name may contain word "
    "characters or '.', '-', '_'."
)


def network_name(property_: str, longest: int = 80) -> Naming:
    """Return the naming rules of Microsoft.Network's resources."""
    return Naming(property_, re.compile(r"[a-zA-Z0-9]([\w.-]*\w)?"), longest, _NETWORK_WORDS)


def group_id(call: Call, name: str) -> str:
    """Return the ID of a resource group of the subscription."""
    return f"/subscriptions/{call.settings.account}/resourceGroups/{name}"


def under_group(kind: str) -> Callable[[Call], str]:
    """Return a function for IDs in a resource group. kind: ``Microsoft.Network/virtualNetworks``."""
    return lambda call: f"{group_id(call, call.text('resourceGroupName'))}/providers/{kind}/{call.name}"


def plain_outputs(kind: str, **more: Callable[[Call], object]) -> Callable[[Call], Properties]:
    """Return a function for outputs: name and type, which every resource has, and `more` by name."""
    return lambda call: {
        "name": call.id.rpartition("/")[2],
        "type": kind,
        **{name: make(call) for name, make in more.items()},
    }


def parts(call: Call, property_: str) -> list[Properties]:
    """Return the named parts of a resource (rules, frontends, routes), each with its ID."""
    return [
        {**part, "id": f"{call.id}/{property_}/{part.get('name')}", "provisioningState": "Succeeded"}
        for part in call.inputs.get(property_) or ()
    ]


def with_parts(type_: str, *properties: str) -> Callable[[Properties], Iterator[tuple[str, str]]]:
    """Return a function for `ResourceType.implied`: others may refer to the parts of a resource."""
    return lambda outputs: ((type_, part["id"]) for name in properties for part in outputs.get(name) or ())


def section(call: Call, path: str) -> Properties:
    """Return the object at a path of the inputs, {} if there is none."""
    return next(at(call.inputs, path), {})


def folded(text: object) -> str:
    """Return an ID in the form in which Azure compares it."""
    return str(text).lower()


def find(call: Call, types: Iterable[str], id_: object) -> Record | None:
    """Return the resource with this ID, or the one that is known by it."""
    return next(iter(call.world.find(types, folded(id_))), None)


def sole_user(path: str, code: str, message: str) -> Rule:
    """Return a rule: the resource named at `path` has no other user. message: may use ``{value}``, ``{user}`` and ``{id}``.

    A subnet may be part of its network; its users are then those of all the network's subnets.
    """

    def rule(call: Call) -> None:
        for reference in call.type.references:
            for text in at(call.inputs, path) if reference.path == path else ():
                target = call.resolve(reference, str(text))
                users = [user for user in (call.world.users(target) if target else ()) if user.id != call.id]
                others = [user for user in users if folded(text) in folded(plain(user.inputs))]
                if others:
                    raise refused(
                        code,
                        message.format(value=text, user=others[0].id, id=call.id),
                        f"give each a separate one; {others[0]} has it",
                    )

    return rule


def outputs(kind: str, **more: Callable[[Call], object]) -> Callable[[Call], Properties]:
    """Return a function for outputs: those that most resources have, and `more` by name."""

    def compute(call: Call) -> Properties:
        return {
            "name": call.id.rpartition("/")[2],
            "type": kind,
            "provisioningState": "Succeeded",
            "resourceGuid": guid(call.id),
            "etag": f'W/"{guid(digest(repr(sorted(call.inputs.items(), key=str))))}"',
            **{name: make(call) for name, make in more.items()},
        }

    return compute


def generic_type(token: str) -> ResourceType:
    """Return a type without rules: it has an ID in its resource group, and any change is an update."""
    _, module, kind = token.split(":")

    def identify(call: Call) -> str:
        group = group_id(call, call.text("resourceGroupName") or "simcloud")
        return call.fresh(lambda digits: f"{group}/providers/Simulated.{module}/{kind}/{digits[:8]}")

    return ResourceType(
        token=token,
        noun=kind,
        identify=identify,
        outputs=lambda call: {"name": call.id.rpartition("/")[2], "type": kind, "provisioningState": "Succeeded"},
        is_proven=False,
    )
