"""A key ring taken from one generation to the next, state by state (docs/keys.md).

Every state is an update of the stack, and then the proof that every host works with it; only then follows the next. What is
in which state is in the stack's configuration, so a run that was cut off goes on where it was, from any machine that has it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import urllib3
from kubernetes.client.exceptions import ApiException

from cluster.key_rings import Ring, RingName, key_name
from operations.access import Access
from operations.etcds.client import EtcdClient, EtcdError
from operations.keys import encryption, published, reports, rings, service_account, trusted
from operations.keys.rings import Stack
from operations.waiting import wait_until
from stacks.automation import PROJECT

PATIENCE_S = 3600.0
"""For a state to be proven: hosts ask every ten minutes, and take turns at restarts."""
ROTATED: tuple[RingName, ...] = ("encryption", "service-account", "etcd-main-ca", "etcd-events-ca", "front-proxy-ca")
"""Rings that can be rotated today."""
_TARGET, _NONE = "rotating-to", "none"
"""Key of the generation that a run goes to, so that none begins another rotation for an end that was cut off."""
_SINCE, _BEGUN = "at-work-since", "begun"
"""Key of the state of a ring, and since when all have worked in it."""


class NotRotatedError(Exception):
    """A ring that there is, and that nothing rotates yet."""

    def __init__(self, name: RingName) -> None:
        super().__init__(
            f"{name} can't be rotated yet: nothing proves yet that workers and running pods trust another authority; "
            "docs/keys.md says what to do if its key got out"
        )


class UnfinishedError(Exception):
    """The stack is not as its spec says, so its update would change more than keys."""

    def __init__(self, cluster: str, changes: int) -> None:
        super().__init__(
            f"an update of {cluster} would change {changes} resources before any key is: bring it to its spec first, "
            f"./menagerie up {cluster} (./menagerie preview {cluster} shows what would change)"
        )


class NotYetError(Exception):
    """What the former key made may still be in use."""

    def __init__(self, cluster: str, name: RingName, until: datetime) -> None:
        super().__init__(
            f"{name}: tokens of the former key may be in use until {until:%Y-%m-%d %H:%M} UTC; the new key signs already. "
            f"After that: ./menagerie keys rotate {cluster} {name} (or let it wait: --wait)"
        )


class NoWayBackError(Exception):
    """The former generation is gone."""

    def __init__(self, cluster: str, name: RingName) -> None:
        super().__init__(
            f"{name} has one generation, and no other to go back to; for a new one: ./menagerie keys rotate {cluster} {name}"
        )


def refuse_unrotated(name: RingName) -> None:
    """NotRotatedError where nothing rotates this ring yet."""
    if name not in ROTATED:
        raise NotRotatedError(name)


@dataclass(frozen=True)
class Rotated:
    """began, ended: states of the ring. rewritten: how many Secrets were encrypted anew."""

    name: RingName
    began: Ring
    ended: Ring
    rewritten: int = 0


class Rotation:
    """One ring of one cluster.

    access: made of a stack's outputs, which change with the operator's certificates. tell: what is going on now.
    done: hears of each state that is proven; it may raise to end the run there. pause: waits; it may raise too.
    settled_s: for how long what API servers publish must have stayed as it is.
    """

    def __init__(
        self,
        cluster: str,
        name: RingName,
        stack: Stack,
        access: Callable[[dict[str, object]], Access],
        tell: Callable[[str], None],
        done: Callable[[str], None],
        pause: Callable[[float], None] = time.sleep,
        every_s: float = 5,
        settled_s: float = published.SETTLED_S,
    ) -> None:
        refuse_unrotated(name)
        self._cluster, self._name, self._stack = cluster, name, stack
        self._make_access, self._tell, self._done, self._pause = access, tell, done, pause
        self._every_s, self._settled_s = every_s, settled_s
        self._outputs = stack.outputs()
        self._access = access(self._outputs)
        self._rewritten = 0

    def plan(self, *, back: bool = False) -> tuple[Ring, ...]:
        """The states from the present one on, itself first. NoWayBackError, ForeignRingsError."""
        rings.refuse_foreign(self._cluster, self._stack, self._outputs)
        now = rings.configured(self._stack)[self._name]
        if now.is_stable and self._recall(_TARGET) == str(now.at_work):
            # The last step of a run that was cut off in it.
            return (now,)
        if back and now.is_stable:
            raise NoWayBackError(self._cluster, self._name)
        return (now, *now.steps(back=back))

    def run(self, *, back: bool = False, wait: bool = False) -> Rotated:
        """Go to the end. wait: also for tokens of a former key; NotYetError without."""
        began, *steps = self.plan(back=back)
        if began.is_stable and steps:
            self._refuse_unfinished()
        else:
            self._go_to(began)
        now = began
        self._remember(_TARGET, str((steps or [began])[-1].at_work))
        for step in steps:
            if step.is_stable:
                self._before_dropping(now, step, wait=wait)
            self._go_to(step)
            now = step
        self._remember(_TARGET, _NONE)
        return Rotated(self._name, began, now, self._rewritten)

    def _refuse_unfinished(self) -> None:
        """UnfinishedError where the stack is not as its spec says, and the proof that hosts are as the stack."""
        if changes := self._stack.preview().changed:
            raise UnfinishedError(self._cluster, changes)
        self._prove(None)

    def _go_to(self, ring: Ring) -> None:
        """Have a state proven, also one that a run was cut off in."""
        counts = self._name == "service-account"
        if counts and ring.state == "promoted" and self._at_work_since(ring) is None:
            self._remember(_SINCE, f"{ring} {_BEGUN}")
        rings.configure(self._stack, self._name, ring)
        self._tell(f"{self._name} {ring}: the stack is updated")
        _, self._outputs = self._stack.up()
        self._access = self._make_access(self._outputs)
        self._prove(reports.revisions(self._access))
        if self._name in published.FIELDS:
            self._prove_published()
        if counts and self._both_have_worked(ring) and self._at_work_since(ring) in (None, _BEGUN):
            self._remember(_SINCE, f"{ring} {datetime.now(UTC).isoformat(timespec='seconds')}")
        self._done(f"{self._name} {ring}")

    def _prove(self, since: dict[str, int] | None) -> None:
        """Wait until every host has said that it works with what the stack has for it."""
        values, api = reports.wanted(self._outputs), self._access.api()
        self._wait(lambda: reports.unproven(values, reports.read(self._access), reports.live_api_servers(api), since))

    def _prove_published(self) -> None:
        """Wait until whoever asks the cluster is told of this ring's authorities, and of no former one."""
        wanted, api = json.loads(str(self._outputs["authorities"]))[self._name], self._access.api()
        self._wait(published.Published(self._name, wanted, api, self._settled_s).missing)
        if self._name == "kubernetes-ca":
            self._wait(lambda: trusted.missing(api, wanted))

    def _wait(self, reason: Callable[[], str]) -> None:
        def missing() -> str:
            try:
                return reason()
            except (EtcdError, ApiException, urllib3.exceptions.HTTPError) as error:
                # The one that was asked may be restarting at this moment.
                return f"no answer: {error}"

        wait_until(missing, PATIENCE_S, self._tell, every_s=self._every_s, pause=self._pause)

    def _before_dropping(self, now: Ring, step: Ring, *, wait: bool) -> None:
        if self._name == "encryption":
            key = key_name(step.at_work)
            etcd = EtcdClient(self._access, "main")
            self._rewritten += encryption.rewrite(etcd, self._access.api, key, self._cluster, self._tell)
            self._done(f"secrets are encrypted with {key}")
        if self._name == "service-account" and self._both_have_worked(now):
            self._wait_for_tokens(now, wait=wait)

    def _wait_for_tokens(self, now: Ring, *, wait: bool) -> None:
        since, api = datetime.fromisoformat(self._at_work_since(now) or ""), self._access.api()
        service_account.refuse_endless(self._cluster, api, since.timestamp())
        until = since + service_account.longest_life(api)
        if datetime.now(UTC) < until and not wait:
            raise NotYetError(self._cluster, self._name, until)

        def missing() -> str:
            left = until - datetime.now(UTC)
            return f"{left // timedelta(minutes=1) + 1} minutes until tokens have ended" if left > timedelta() else ""

        wait_until(missing, (until - since).total_seconds() + 60, self._tell, every_s=5, pause=self._pause)

    def _both_have_worked(self, ring: Ring) -> bool:
        """Whether the newer of two generations has been at work, so that what it made is in use."""
        known = self._recall(_SINCE).partition(" ")[0]
        return known in (str(ring), str(ring.turned)) and not ring.is_stable

    def _at_work_since(self, ring: Ring) -> str | None:
        """When it was proven that all work in this state; `_BEGUN` where that was begun, None where it was not."""
        known, _, since = self._recall(_SINCE).partition(" ")
        return since if known == str(ring) else None

    def _recall(self, what: str) -> str:
        """What an earlier run kept in the stack's configuration."""
        return self._stack.values().get(f"{what}-{self._name}", "")

    def _remember(self, what: str, value: str) -> None:
        self._stack.configure(PROJECT, f"{what}-{self._name}", value)
