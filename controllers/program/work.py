"""One round of each controller: what the command does, without prompts. Each change is logged as a line."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, Protocol

from cluster.errors import MenagerieError
from cluster.load import load_cluster
from cluster.sites import Site
from cluster.spec import Cluster
from cluster.tenancy import Tenancy
from controllers.bookkeeping import bucket, power
from controllers.bookkeeping.run import Bookkeeper
from controllers.kinds import METERING, TENANCY_CAPACITY, TENANCY_SYNC
from controllers.program.access import PodAccess
from controllers.tenancy.capacity.run import Capacity
from controllers.tenancy.directory import Directory
from controllers.tenancy.directory.choose import directory_of, settings_of
from controllers.tenancy.directory.model import directory_error
from controllers.tenancy.sync.plan import TenancyChange
from controllers.tenancy.sync.run import ApiAccess, Sync

Progress = Callable[[], None]
"""Called after each change, so that the health check sees that the controller is at work."""
log = logging.getLogger(__name__)


class Trouble(NamedTuple):
    """A problem to log. level: of `logging`."""

    level: int
    text: str


@dataclass(frozen=True)
class RoundOutcome:
    """The result of a round.

    changes: number of changes. failed: changes that the API refused. refused: why nothing may be changed. undecided: conflicts that
    need a decision. sizes: kind of thing -> how many there are.
    """

    changes: int = 0
    failed: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    undecided: tuple[str, ...] = ()
    sizes: Mapping[str, int] = field(default_factory=dict)

    @property
    def end(self) -> str:
        """Return done, refused or failed."""
        return "failed" if self.failed else "refused" if self.refused else "done"

    def troubles(self) -> tuple[Trouble, ...]:
        """Return the problems to log."""
        return (
            *(Trouble(logging.ERROR, f"failed: {each}") for each in self.failed),
            *(Trouble(logging.ERROR, f"refused: {each}") for each in self.refused),
            *(Trouble(logging.WARNING, f"needs a decision: {each}") for each in self.undecided),
        )


class Work(Protocol):
    """What a controller does in a round. The spec is read again for each round."""

    def once(self, progress: Progress) -> RoundOutcome: ...


class TenancySync:
    """`menagerie tenancy sync`. secrets: folder with one file for each secret that the spec names."""

    def __init__(self, spec: Path, secrets: Path, access: ApiAccess) -> None:
        self._spec, self._secrets, self._access = spec, secrets, access
        self._accessible: tuple[Tenancy, Sync] | None = None

    def once(self, progress: Progress) -> RoundOutcome:
        sync = self._sync(load_cluster(self._spec))
        look = sync.look()
        sizes = {"people": len(look.roster.people), "teams": len(look.roster.teams)}
        sizes["frozen namespaces"] = sum(bool(space.frozen) for space in look.state.spaces.values())
        if look.refused:
            return RoundOutcome(refused=look.refused, sizes=sizes)

        def report(change: TenancyChange) -> None:
            log.info("%s %s: %s", change.verb, change.what, change.reason)
            progress()

        applied = sync.apply(look, report)
        failed = tuple(f"{change.verb} {change.what}: {why}" for change, why in applied.failed)
        return RoundOutcome(len(applied.changes), failed, (), look.plan.conflicts, sizes)

    def _sync(self, cluster: Cluster) -> Sync:
        """Return the Sync of the last round, with its connections, unless the settings have changed."""
        settings = settings_of(cluster)
        if self._accessible is None or self._accessible[0] != settings:
            directory: Directory = directory_of(cluster, self._spec.parent, self._secret)
            self._accessible = settings, Sync(self._access, directory, settings)
        return self._accessible[1]

    def _secret(self, name: str) -> str:
        try:
            return (self._secrets / name).read_text(encoding="utf-8").rstrip("\n")
        except OSError as error:
            reason = f"secret {name} can't be read ({error}); `menagerie controllers apply` delivers it"
            raise directory_error("its password", [reason]) from None


class TenancyCapacity:
    """`menagerie tenancy sync --hosts`, but without writing policies and without evictions."""

    def __init__(self, spec: Path, secrets: Path, access: ApiAccess) -> None:
        self._spec, self._access = spec, access

    def once(self, progress: Progress) -> RoundOutcome:
        cluster = load_cluster(self._spec)
        own = Capacity(self._access, cluster, settings_of(cluster))
        look = own.look()
        waiting = sum(bool(move.waits) for move in look.plan.moves)
        sizes = {"hosts": len(look.hosts), "hosts of teams": sum(bool(host.holder) for host in look.hosts)}
        sizes["moves that wait"] = waiting
        restore = f"`menagerie controllers apply {cluster.name}` restores it"
        rules = tuple(f"{rule.what}: {rule.reason}; {restore}" for rule in look.rules)
        if look.refused or rules:
            # Without these policies no host may belong to a team.
            return RoundOutcome(failed=rules, refused=look.refused, undecided=look.plan.conflicts, sizes=sizes)

        def report(host: str) -> None:
            log.info("moved %s", host)
            progress()

        applied = own.apply(look, report)
        failed = tuple(f"{what}: {why}" for what, why in applied.failed)
        return RoundOutcome(len(applied.changes), failed, (), look.plan.conflicts, sizes)


class Metering:
    """The ledger: one segment of its journal, and days that have ended. secrets: folder with the files of the bucket, and logins of BMCs."""

    def __init__(self, spec: Path, secrets: Path, access: ApiAccess) -> None:
        self._spec, self._secrets, self._access = spec, secrets, access
        # The bucket knows no Lease, so this process asks before each write, as for requests to the API.
        self._may_write = access.check if isinstance(access, PodAccess) else lambda: None
        self._keeper: Bookkeeper | None = None
        self._made_from: tuple[Tenancy, Mapping[str, str]] | None = None
        self._read_with: tuple[Mapping[str, Site], Mapping[str, str]] | None = None
        self._unread = ""

    def once(self, progress: Progress) -> RoundOutcome:
        cluster = load_cluster(self._spec)
        keeper = self._keep(settings_of(cluster), bucket.read(self._secrets))
        self._read_power(cluster, keeper)
        kept = keeper.once(cluster, progress)
        written = kept.segments + len(kept.days) + (kept.running is not None)
        undecided = (*kept.incomplete, *((self._unread,) if self._unread else ()))
        return RoundOutcome(written, undecided=undecided, sizes=kept.sizes)

    def _keep(self, settings: Tenancy, files: Mapping[str, str]) -> Bookkeeper:
        """Return the keeper of the last round, with what waits to be written; with a new key if it was replaced."""
        if self._keeper is None or self._made_from is None or self._made_from[0] != settings:
            self._keeper = Bookkeeper(self._access, bucket.opened(files, self._may_write), settings)
            self._read_with = None
        elif self._made_from[1] != files:
            self._keeper.store = bucket.opened(files, self._may_write)
        self._made_from = settings, files
        return self._keeper

    def _read_power(self, cluster: Cluster, keeper: Bookkeeper) -> None:
        """Let the keeper read power with the present logins. Hosts' time is counted also if that is impossible."""
        try:
            logins = power.read_logins(cluster, self._secrets)
            if self._read_with == (cluster.spec.sites, logins):
                return
            if keeper.power:
                keeper.power.close()
            keeper.power, self._read_with, self._unread = None, (cluster.spec.sites, logins), ""
            keeper.power = power.opened(cluster, self._spec.parent, logins)
        except MenagerieError as error:
            self._unread = f"no power is read: {error}"


WORK: Mapping[str, Callable[[Path, Path, ApiAccess], Work]] = {
    TENANCY_SYNC.name: TenancySync,
    TENANCY_CAPACITY.name: TenancyCapacity,
    METERING.name: Metering,
}
