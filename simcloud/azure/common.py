"""What types of Azure have in common."""

from __future__ import annotations

from collections.abc import Callable

from simcloud.identifiers import digest, guid
from simcloud.rules import Call, ResourceType
from simcloud.values import Properties


def group_id(call: Call, name: str) -> str:
    """The id of a resource group of the subscription."""
    return f"/subscriptions/{call.settings.account}/resourceGroups/{name}"


def under_group(kind: str) -> Callable[[Call], str]:
    """Ids of what lies in a resource group. kind: ``Microsoft.Network/virtualNetworks``."""
    return lambda call: f"{group_id(call, call.text('resourceGroupName'))}/providers/{kind}/{call.name}"


def outputs(kind: str, **more: Callable[[Call], object]) -> Callable[[Call], Properties]:
    """What everything has, and `more` by name."""

    def made(call: Call) -> Properties:
        return {
            "name": call.name,
            "type": kind,
            "provisioningState": "Succeeded",
            "resourceGuid": guid(call.id),
            "etag": f'W/"{guid(digest(repr(sorted(call.inputs.items(), key=str))))}"',
            **{name: make(call) for name, make in more.items()},
        }

    return made


def generic_type(token: str) -> ResourceType:
    """A type without rules: an id in its resource group, and any change is an update."""
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
