"""One cluster's worth of Azure: inputs that Azure takes, of every type, in the order in which they can be made."""

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
"""See these."""

# Of these, an update is refused for another reason: most of what is looked at cannot change.
MADE_ANEW = {"nat", "endpoint", "disk", "machine", "proximity", "connection", "gateway"}

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
        """Another of the same, of another name. changes: of paths; see `changed`."""
        return self.api.create(  # type: ignore[no-any-return]
            token(key), f"{key} twin", **changed({**inputs(key), ESTATE[key][1]: name}, changes)
        )

    def update(self, key: str, changes: Mapping[str, Any]) -> Record:
        """The same with other inputs."""
        record = self.records[key]
        new = changed(record.inputs, changes)
        return self.simulation.update(self.api.settings, record.type, record.urn, record.id, new)

    def anew(self, key: str, changes: Mapping[str, Any]) -> Record:
        """The same once more in the place of the old one, which is gone without any rule."""
        self.without(key)
        return self.api.create(token(key), key, **changed(inputs(key), changes))  # type: ignore[no-any-return]

    def again(self, key: str) -> Record:
        """The same once more."""
        return self.api.create(token(key), key, **inputs(key))  # type: ignore[no-any-return]

    def retry(self, key: str, changes: Mapping[str, Any]) -> Record:
        """The same with other inputs, made anew if an update would not get as far as to look at them."""
        return self.anew(key, changes) if key in MADE_ANEW else self.update(key, changes)

    def without(self, *keys: str) -> None:
        """Take away what stands in a test's way, without any rule."""
        for key in keys:
            self.api.world.remove(self.records[key].type, self.records[key].id)


def token(key: str) -> str:
    return f"azure-native:{ESTATE[key][0]}"


def inputs(key: str) -> dict[str, Any]:
    """What a program would declare."""
    kind, property_, name, others = ESTATE[key]
    group = {} if kind in _WITHOUT_GROUP else {"resourceGroupName": "apes"}
    return copy.deepcopy({**group, property_: name, **others})


def changed(given: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """A copy with other values at paths like ``ipConfigurations[0].subnet.id``; None takes one away."""
    made = copy.deepcopy(dict(given))
    for path, value in changes.items():
        parts = [int(part) if part.isdigit() else part for part in re.findall(r"[^.\[\]]+", path)]
        holder: Any = made
        for part in parts[:-1]:
            holder = holder[part] if isinstance(part, int) else holder.setdefault(part, {})
        if value is None:
            holder.pop(parts[-1], None)
        elif isinstance(holder, list) and parts[-1] == len(holder):
            holder.append(value)
        else:
            holder[parts[-1]] = value
    return made
