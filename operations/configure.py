"""Runs Ansible on the workers of a built cluster, batch by batch, and keeps a journal of what is done."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path

from clients.access import STATE, Access
from cluster.errors import FailedError, UnreachableError
from cluster.project import TOOLKIT
from cluster.spec import Cluster
from components.workers.group_vars import Groups, operator_variables, roles
from inventories.batches import Amount, batches, stops
from inventories.build import Inventory, build, layout
from inventories.desired import Digests, desired
from inventories.journal import ConfigureJournal
from inventories.matching import check_tags, limited
from inventories.report import Progress, RunReport, TaskStatus, merged, named
from inventories.run import run
from operations import lab
from operations.machines_journal import host_keys
from operations.machines_lock import alone
from operations.stack import has_stack, not_built

Watch = Callable[[Progress], None]
Tokens = Callable[[Collection[str]], AbstractContextManager[Mapping[str, str]]]
"""Creates a bootstrap token for each host that has to join, for the length of a block."""


TIMEOUT_S = 180
CLOUD_TIMEOUT_S = 900
"""Time-out for each wait: cloud hosts take minutes to start, a lab's hosts start quickly."""


def workers_error(report: RunReport, why_stopped: str = "") -> FailedError | UnreachableError:
    """Return the error for workers that could not be configured."""
    done = sum(host.succeeded for host in report.hosts.values())
    lines = [f"{done} of {len(report.hosts)} hosts done", *map(str, report.groups)]
    if report.not_begun:
        lines.append(f"{why_stopped or 'the run was interrupted'}; not started: {named(report.not_begun)}")
    text = "\n  ".join(lines) + "\nFix these hosts and run the same command again; it resumes here."
    if report.unreachable and not report.failed:
        return UnreachableError(text, code="workers-unreachable")
    return FailedError(text, code="workers-failed")


def selecting(limit: str | None, tags: Sequence[str]) -> list[str]:
    """Return the command-line options that select hosts and roles; none for all."""
    return [*(["--limit", limit] if limit else []), *(["--tags", ",".join(tags)] if tags else [])]


@dataclass(frozen=True)
class PlaybookRequest:
    """What to run on which workers.

    limit: like ansible-playbook's --limit. tags: names of roles. resume: skip hosts that have the desired state
    according to the journal. batch: hosts at a time. max_failures: start no further batch after more failed hosts than this.
    leaves: hosts to leave out.
    """

    limit: str | None = None
    tags: tuple[str, ...] = ()
    check: bool = False
    diff: bool = False
    resume: bool = False
    batch: Amount | None = None
    max_failures: Amount | None = None
    leaves: frozenset[str] = frozenset()

    @property
    def options(self) -> str:
        """The command-line options of the request; "" for every host and role."""
        return shlex.join([*selecting(self.limit, self.tags), *self._flags(), *self._amounts()])

    def _flags(self) -> Iterator[str]:
        flags = (("--resume", self.resume), ("--dry-run", self.check), ("--diff", self.diff))
        return (name for name, is_set in flags if is_set)

    def _amounts(self) -> Iterator[str]:
        for name, amount in (("--parallel", self.batch), ("--max-failures", self.max_failures)):
            yield from (name, str(amount)) if amount else ()

    @property
    def joins(self) -> bool:
        """Whether hosts may need a token."""
        return not self.check and (not self.tags or "kubelet" in self.tags)


@dataclass(frozen=True)
class ConfigureWork:
    """The work of a request. hosts: those to run on. left_out: those that have the desired state already."""

    request: PlaybookRequest
    inventory: Inventory = field(repr=False)
    access: Access = field(repr=False)
    desired: Mapping[str, Digests] = field(repr=False)
    hosts: tuple[str, ...]
    left_out: tuple[str, ...]

    @property
    def batches(self) -> tuple[tuple[str, ...], ...]:
        return tuple(batches(self.hosts, self.request.batch))


def variables(cluster: Cluster) -> Groups:
    """Return the operator's variables for the cluster's workers. Raises SpecError with every error in the files."""
    return operator_variables(cluster, layout(cluster).groups)


def refuse(cluster: Cluster, request: PlaybookRequest) -> None:
    """Check everything that can block the request before anything starts; raise if it would."""
    if request.limit:
        limited(layout(cluster), request.limit)
    check_tags(request.tags, roles(TOOLKIT))
    variables(cluster)
    if cluster.is_lab:
        lab.refuse_without_rights()
    if not has_stack(cluster):
        raise not_built(cluster)


def tokens(cluster: Cluster, access: Access, report: Callable[[str], None]) -> Tokens:
    """Wait for the API and publish the hosts and their allowed node labels. Return a function that creates a batch's
    tokens."""
    from clients.waiting import api_missing, wait_until  # noqa: PLC0415 - memory: the Kubernetes client, not next to the engine
    from operations import node_labels, serving  # noqa: PLC0415 - memory: the Kubernetes client, not next to the engine
    from operations.tokens import join_tokens  # noqa: PLC0415 - memory: the Kubernetes client, not next to the engine

    api = access.api()
    wait_until(lambda: api_missing(api), patience_s(cluster), report)
    serving.publish_addresses(cluster, api)
    node_labels.publish(cluster, api)
    return lambda hosts: join_tokens(api, hosts)


def no_tokens(_: Collection[str]) -> AbstractContextManager[Mapping[str, str]]:
    """Return no tokens, for runs in which no host joins."""
    return nullcontext({})


def patience_s(cluster: Cluster) -> int:
    """Return the time-out of each wait."""
    return TIMEOUT_S if cluster.is_lab else CLOUD_TIMEOUT_S


def nothing(work: ConfigureWork) -> RunReport:
    """Return the report of a run without hosts."""
    return RunReport({}, left_out=work.left_out)


def plan(cluster: Cluster, access: Access, request: PlaybookRequest) -> ConfigureWork:
    """Return which hosts a request runs on; none if there are none at sites. Changes nothing."""
    inventory = build(cluster, access.outputs, variables(cluster), host_keys(cluster, access))
    if not inventory.hosts and request.limit is None:
        return ConfigureWork(request, inventory, access, {}, (), ())
    chosen = tuple(host for host in limited(inventory, request.limit) if host not in request.leaves)
    digests = desired(inventory, TOOLKIT, request.tags, chosen)
    journal = ConfigureJournal(_journal(cluster.name))
    left_out = frozenset(host for host in chosen if request.resume and journal.is_at(host, digests[host]))
    return ConfigureWork(
        request,
        inventory,
        access,
        digests,
        tuple(host for host in chosen if host not in left_out),
        tuple(host for host in chosen if host in left_out),
    )


def configure(work: ConfigureWork, tokens: Tokens, watch: Watch = lambda _: None) -> tuple[RunReport, str]:
    """Configure the hosts. Return the report, and why it stopped before the last batch ("" if it did not).

    tokens: called for each batch, because tokens are valid for an hour and a large fleet takes longer.
    An interrupted run does not raise: its report is `canceled`.
    Raises StackLockedError while another run works on the same cluster's workers.
    """
    with alone(STATE / work.inventory.cluster, "workers", "configured"):
        return configure_in_turn(work, tokens, watch)


def configure_in_turn(work: ConfigureWork, tokens: Tokens, watch: Watch = lambda _: None) -> tuple[RunReport, str]:
    """Do the same as `configure`, for a caller that holds the workers' lock already."""
    journal = ConfigureJournal(_journal(work.inventory.cluster))
    with work.access.ssh_key_file() as key:
        if not work.request.check:
            journal.begin({host: work.desired[host] for host in work.hosts})
        keeper = _Keeper(work, journal, watch)
        reports: list[RunReport] = []
        why = ""
        for batch in work.batches:
            reports.append(_batch(work, batch, tokens, key, keeper))
            why = _why_stop(work, reports, len(batch))
            if reports[-1].canceled or why:
                break
    report = merged(reports)
    begun = sum(len(batch) for batch in work.batches[: len(reports)])
    interrupted = [host for host in work.hosts[:begun] if host not in report.hosts]
    not_begun = (*interrupted, *work.hosts[begun:])
    return replace(report, left_out=work.left_out, not_begun=not_begun), why if work.hosts[begun:] else ""


def _batch(work: ConfigureWork, batch: tuple[str, ...], tokens: Tokens, key: Path | None, keeper: _Keeper) -> RunReport:
    request = work.request
    with (tokens if request.joins else no_tokens)(batch) as host_tokens:
        report = run(
            work.inventory.only(batch).joining(host_tokens),
            check=request.check,
            diff=request.diff,
            tags=request.tags,
            private_key=key,
            on_progress=keeper.hear,
        )
    if not report.canceled:
        keeper.done(host for host, result in report.hosts.items() if result.succeeded)
    return report


def _why_stop(work: ConfigureWork, reports: list[RunReport], size: int) -> str:
    broken = [len(report.failed) + len(report.unreachable) for report in reports]
    return stops(sum(broken), len(work.hosts), work.request.max_failures, (broken[-1], size))


class _Keeper:
    """Records each finished host in the journal, and passes progress on."""

    def __init__(self, work: ConfigureWork, journal: ConfigureJournal, watch: Watch) -> None:
        self._digests = work.desired
        self._journal = None if work.request.check else journal
        self._watch = watch
        self._broken: set[str] = set()

    def hear(self, progress: Progress) -> None:
        if progress.status in (TaskStatus.FAILED, TaskStatus.UNREACHABLE):
            self._broken.add(progress.host)
        elif progress.is_last and progress.host not in self._broken:
            self.done([progress.host])
        self._watch(progress)

    def done(self, hosts: Iterable[str]) -> None:
        if self._journal:
            self._journal.done({host: self._digests[host] for host in hosts})


def _journal(cluster: str) -> Path:
    return STATE / cluster / "workers.jsonl"
