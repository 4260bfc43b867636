"""The resources that exist in the simulated clouds, by type and ID, including those made outside the engine.

In memory, or kept in a file with one JSON line per change, which stores only digests of secrets.
"""

from __future__ import annotations

import json
import re
import threading
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sandbox.simcloud.values import Properties, Secret, sealed, unsealed

Key = tuple[str, str]
"""Type token and ID."""
SECURITY_GROUP_RULES = "rules per security group"
"""A quota of AWS."""


# azure-native has a type for each API version, besides the one without: azure-native:network/v20240501:Subnet.
_VERSION = re.compile(r"/v\d{8}\w*(?=:)")


def normal(token: str) -> str:
    """Return a type token without its API version."""
    return _VERSION.sub("", token)


@dataclass(frozen=True)
class Record:
    """One resource.

    region: "" for none. known_by: (type, text) by which others may refer to it, or to resources that come with it.
    targets: the resources that it refers to. uses: those of them that cannot be deleted while this exists.
    """

    type: str
    id: str
    urn: str
    region: str
    inputs: Properties
    outputs: Properties
    known_by: tuple[tuple[str, str], ...] = ()
    targets: tuple[Key, ...] = ()
    uses: tuple[Key, ...] = ()

    @property
    def key(self) -> Key:
        return self.type, self.id

    @property
    def cloud(self) -> str:
        """Pulumi package: ``aws``, ``gcp`` or ``azure-native``."""
        return self.type.partition(":")[0]

    def __str__(self) -> str:
        return f"{self.type} {self.id}" + (f" (made as {self.urn})" if self.urn else "")


class World:
    """Every resource of the simulated clouds.

    path: a file to keep them in; None keeps them in memory. A truncated last line is dropped.
    lock: hold it from reading the world until the change that depends on it.
    unproven: types without rules -> URNs of the resources that were declared with them.
    quotas: name of a quota -> its value, for those that the account's owner has had raised.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.lock = threading.RLock()
        self.unproven: dict[str, set[str]] = defaultdict(set)
        self.quotas: dict[str, int] = {}
        self._records: dict[Key, Record] = {}
        self._by_type: dict[str, dict[Key, Record]] = defaultdict(dict)
        self._by_text: dict[tuple[str, str], list[Key]] = defaultdict(list)
        self._users: dict[Key, set[Key]] = defaultdict(set)
        self._used_ids: set[str] = set()
        self._uses: Counter[Key] = Counter()
        self._path = path
        if path is not None:
            self._load(path)

    def __iter__(self) -> Iterator[Record]:
        with self.lock:
            return iter(list(self._records.values()))

    def __len__(self) -> int:
        return len(self._records)

    def get(self, type_: str, id_: str) -> Record | None:
        """Return the resource with this ID, if there is one."""
        return self._records.get((type_, id_))

    def of_type(self, type_: str) -> list[Record]:
        """Return every resource of a type."""
        return list(self._by_type[type_].values())

    def find(self, types: Iterable[str], text: str) -> list[Record]:
        """Return the resources of one of `types` that `text` (an ID, ARN, link or name) may refer to."""
        return [self._records[key] for type_ in types for key in self._by_text[type_, text]]

    def users(self, record: Record) -> list[Record]:
        """Return the resources that keep `record` from being deleted."""
        return [self._records[key] for key in sorted(self._users[record.key])]

    def below(self, record: Record) -> list[Record]:
        """Return the resources whose ID continues that of `record`."""
        return [other for other in self if other.id.startswith(f"{record.id}/")]

    def is_fresh(self, id_: str) -> bool:
        """Whether no resource has had this ID since the world was opened."""
        return id_ not in self._used_ids

    def uses_of(self, grant: Record) -> int:
        """Count a use of a grant; return how many there were. A grant that is made again starts from none."""
        self._uses[grant.key] += 1
        return self._uses[grant.key]

    def put(self, record: Record) -> None:
        """Create or change a resource, without checking any rule."""
        with self.lock:
            self._store(record)
            self._write({**vars(record), "inputs": sealed(record.inputs), "outputs": sealed(record.outputs)})

    def remove(self, type_: str, id_: str) -> None:
        """Delete a resource without checking any rule, as if by hand in the console. Raises KeyError if there is none."""
        with self.lock:
            self._drop(self._records[type_, id_])
            del self._uses[type_, id_]
            self._write({"type": type_, "id": id_, "gone": True})

    def change(self, type_: str, id_: str, **properties: object) -> None:
        """Change properties of a resource without the engine's knowledge. Raises KeyError if there is none."""
        with self.lock:
            old = self._records[type_, id_]
            new = {
                name: Secret(value) if isinstance(old.outputs.get(name), Secret) else value
                for name, value in properties.items()
            }
            given = {name: value for name, value in new.items() if name in old.inputs or name not in old.outputs}
            self.put(replace(old, inputs={**old.inputs, **given}, outputs={**old.outputs, **new}))

    def orphans(self, deployment: Mapping[str, Any]) -> list[Record]:
        """Return the resources that no stack knows.

        deployment: the engine's export of the state (``Stack.export_stack().deployment``).
        """
        managed = {(normal(resource["type"]), resource.get("id")) for resource in deployment.get("resources", ())}
        return [record for record in self if record.key not in managed]

    def _store(self, record: Record) -> None:
        if record.key in self._records:
            self._drop(self._records[record.key])
        self._records[record.key] = self._by_type[record.type][record.key] = record
        self._used_ids.add(record.id)
        for name in record.known_by:
            self._by_text[name].append(record.key)
        for key in record.uses:
            self._users[key].add(record.key)

    def _drop(self, record: Record) -> None:
        del self._records[record.key], self._by_type[record.type][record.key]
        for name in record.known_by:
            self._by_text[name].remove(record.key)
        for key in record.uses:
            self._users[key].discard(record.key)

    def _write(self, line: Mapping[str, object]) -> None:
        if self._path is not None:
            with self._path.open("a") as file:
                file.write(json.dumps(line) + "\n")

    def _load(self, path: Path) -> None:
        text = path.read_text() if path.exists() else ""
        whole = text[: text.rfind("\n") + 1]
        if whole != text:
            path.write_text(whole)
        for line in map(json.loads, whole.splitlines()):
            if line.get("gone"):
                self._drop(self._records[line["type"], line["id"]])
            else:
                self._store(_record(line))


def _record(line: Mapping[str, Any]) -> Record:
    pairs = {name: tuple((first, second) for first, second in line[name]) for name in ("known_by", "targets", "uses")}
    values = {name: unsealed(line[name]) for name in ("inputs", "outputs")}
    return Record(**{**line, **pairs, **values})
