"""One cluster's Azure resources: valid inputs of every type, in an order in which they can be created."""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping
from typing import Any

from sandbox.simcloud.simulation import SimulatedCloud
from sandbox.simcloud.world import Record
from tests.simcloud.azure_hosts import HOSTS
from tests.simcloud.azure_services import SERVICES

ESTATE = {**HOSTS, **SERVICES}
"""Key -> token, name property, name and inputs; see HOSTS and SERVICES."""

# Resources that tests recreate: an update would be refused first, because most properties that are checked cannot change.
RECREATED = {"nat", "endpoint", "disk", "machine", "proximity", "connection", "gateway"}

_WITHOUT_GROUP = {
    "authorization:RoleAssignment",
    "authorization:RoleDefinition",
    "authorization:ManagementLockByScope",
}


class Estate:
    """The estate in a simulated Azure."""

    def __init__(self, api: Any) -> None:
        self.api = api
        self.records: dict[str, Record] = {}
        for key in ESTATE:
            self.records[key] = api.create(token(key), key, **inputs(key))

    @property
    def simulation(self) -> SimulatedCloud:
        return self.api.simulation  # type: ignore[no-any-return]

    def __getitem__(self, key: str) -> Record:
        return self.records[key]

    def twin(self, key: str, name: str | None, **changes: Any) -> Record:
        """Create a second resource of the same kind under another name. changes: by path; see `changed`."""
        return self.api.create(  # type: ignore[no-any-return]
            token(key), f"{key} twin", **changed({**inputs(key), ESTATE[key][1]: name}, changes)
        )

    def update(self, key: str, changes: Mapping[str, Any]) -> Record:
        """Update a resource with other inputs."""
        record = self.records[key]
        new = changed(record.inputs, changes)
        return self.simulation.update(self.api.settings, record.type, record.urn, record.id, new)

    def recreate(self, key: str, changes: Mapping[str, Any]) -> Record:
        """Remove a resource without checking any rule, and create it again with other inputs."""
        self.without(key)
        return self.api.create(token(key), key, **changed(inputs(key), changes))  # type: ignore[no-any-return]

    def create_again(self, key: str) -> Record:
        """Create the same resource once more."""
        return self.api.create(token(key), key, **inputs(key))  # type: ignore[no-any-return]

    def retry(self, key: str, changes: Mapping[str, Any]) -> Record:
        """Update a resource with other inputs, or recreate it if the update would be refused before they are checked."""
        return self.recreate(key, changes) if key in RECREATED else self.update(key, changes)

    def without(self, *keys: str) -> None:
        """Remove resources that would interfere with a test, without checking any rule."""
        for key in keys:
            self.api.world.remove(self.records[key].type, self.records[key].id)


def token(key: str) -> str:
    return f"azure-native:{ESTATE[key][0]}"


def inputs(key: str) -> dict[str, Any]:
    """Return the inputs that a program would declare."""
    kind, property_, name, others = ESTATE[key]
    group = {} if kind in _WITHOUT_GROUP else {"resourceGroupName": "apes"}
    return copy.deepcopy({**group, property_: name, **others})


def changed(given: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy with other values at paths like ``ipConfigurations[0].subnet.id``; None removes a value."""
    result = copy.deepcopy(dict(given))
    for path, value in changes.items():
        parts = [int(part) if part.isdigit() else part for part in re.findall(r"[^.\[\]]+", path)]
        holder: Any = result
        for part in parts[:-1]:
            holder = holder[part] if isinstance(part, int) else holder.setdefault(part, {})
        if value is None:
            holder.pop(parts[-1], None)
        elif isinstance(holder, list) and parts[-1] == len(holder):
            holder.append(value)
        else:
            holder[parts[-1]] = value
    return result
