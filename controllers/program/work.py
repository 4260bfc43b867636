"""A round of each controller: as the command's, without anybody to ask. What it does is said line by line."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from cluster.load import load_cluster
from cluster.tenancy import Tenancy
from controllers.kinds import TENANCY_CAPACITY, TENANCY_SYNC
from controllers.tenancy.capacity.run import Capacity
from controllers.tenancy.directory import Directory
from controllers.tenancy.directory.choose import directory_of, settings_of
from controllers.tenancy.directory.model import unbelieved
from controllers.tenancy.sync.run import Access, Sync

Say = Callable[[str], None]


@dataclass(frozen=True)
class Outcome:
    """made: changes. failed: those that the API refused. refused: why nothing may be changed. undecided: what needs somebody.

    sizes: what there is, by what it is.
    """

    made: int = 0
    failed: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    undecided: tuple[str, ...] = ()
    sizes: Mapping[str, int] = field(default_factory=dict)

    @property
    def end(self) -> str:
        """done, refused or failed."""
        return "failed" if self.failed else "refused" if self.refused else "done"

    def troubles(self) -> tuple[str, ...]:
        """What somebody should see to, in words."""
        return (
            *(f"failed: {each}" for each in self.failed),
            *(f"refused: {each}" for each in self.refused),
            *(f"to be decided: {each}" for each in self.undecided),
        )


class Work(Protocol):
    """What a controller does. The spec is read anew for each round."""

    def once(self, say: Say) -> Outcome: ...


class TenancySync:
    """`menagerie tenancy sync`. secrets: a folder with a file for each secret that the spec names."""

    def __init__(self, spec: Path, secrets: Path, access: Access) -> None:
        self._spec, self._secrets, self._access = spec, secrets, access
        self._accessible: tuple[Tenancy, Sync] | None = None

    def once(self, say: Say) -> Outcome:
        sync = self._sync(settings_of(load_cluster(self._spec)))
        found = sync.look()
        sizes = {"people": len(found.roster.people), "teams": len(found.roster.teams)}
        sizes["frozen namespaces"] = sum(bool(each.frozen) for each in found.seen.spaces.values())
        if found.refused:
            return Outcome(refused=found.refused, sizes=sizes)
        applied = sync.apply(found, lambda change: say(f"{change.verb} {change.what}: {change.reason}"))
        failed = tuple(f"{change.verb} {change.what}: {why}" for change, why in applied.failed)
        return Outcome(len(applied.made), failed, (), found.plan.conflicts, sizes)

    def _sync(self, settings: Tenancy) -> Sync:
        """One for as long as the settings are the same: it keeps its connections."""
        if self._accessible is None or self._accessible[0] != settings:
            directory: Directory = directory_of(settings, self._spec.parent, self._secret)
            self._accessible = settings, Sync(self._access, directory, settings)
        return self._accessible[1]

    def _secret(self, name: str) -> str:
        try:
            return (self._secrets / name).read_text(encoding="utf-8").rstrip("\n")
        except OSError as error:
            reason = f"secret {name} is not here ({error}); menagerie controllers apply brings it"
            raise unbelieved("its password", [reason]) from None


class TenancyCapacity:
    """`menagerie tenancy sync --hosts`, without its rules and without evictions."""

    def __init__(self, spec: Path, secrets: Path, access: Access) -> None:
        self._spec, self._access = spec, access

    def once(self, say: Say) -> Outcome:
        cluster = load_cluster(self._spec)
        own = Capacity(self._access, cluster, settings_of(cluster))
        found = own.look()
        waiting = sum(bool(move.waits) for move in found.plan.moves)
        sizes = {"hosts": len(found.hosts), "hosts of teams": sum(bool(host.holder) for host in found.hosts)}
        sizes["moves that wait"] = waiting
        rules = tuple(f"{rule.what}: {rule.reason}; menagerie controllers apply writes it" for rule in found.rules)
        if found.refused or rules:
            # Without its policies no host may be a team's.
            return Outcome(failed=rules, refused=found.refused, undecided=found.plan.conflicts, sizes=sizes)
        applied = own.apply(found, lambda host: say(f"moved {host}"))
        failed = tuple(f"{what}: {why}" for what, why in applied.failed)
        return Outcome(len(applied.made), failed, (), found.plan.conflicts, sizes)


WORK: Mapping[str, Callable[[Path, Path, Access], Work]] = {
    TENANCY_SYNC.name: TenancySync,
    TENANCY_CAPACITY.name: TenancyCapacity,
}
