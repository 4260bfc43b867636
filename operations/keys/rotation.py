"""A key ring taken from one generation to the next, state by state (docs/how-to/keys.md).

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

from clients.access import Access
from clients.etcd_client import EtcdClient, EtcdError
from clients.waiting import wait_until
from cluster.errors import FailedError, RefusedError
from cluster.key_rings import Ring, RingName, key_name
from operations.keys import encryption, kubelets, pods, published, reports, rings, service_account, trusted
from operations.keys.rings import Stack
from stacks.backend import PROJECT

PATIENCE_S = 3600.0
"""For a state to be proven: hosts ask every ten minutes, and take turns at restarts."""
_TARGET, _NONE = "rotating-to", "none"
"""Key of the generation that a run goes to, so that none begins another rotation for an end that was cut off."""
_SINCE, _BEGUN = "at-work-since", "begun"
"""Key of the state of a ring, and since when all have worked in it."""


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
    settled_s: for how long what API servers publish must have stayed as it is. spread_s: until pods have a changed ConfigMap.
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
        spread_s: float = pods.SPREAD_S,
    ) -> None:
        self._cluster, self._name, self._stack = cluster, name, stack
        self._make_access, self._tell, self._done, self._pause = access, tell, done, pause
        self._every_s, self._settled_s, self._spread_s = every_s, settled_s, spread_s
        self._outputs = stack.outputs()
        self._access = access(self._outputs)
        self._rewritten = 0
        self._wait_for_tokens_too = self._pods_follow = False
        self._again = ""

    def plan(self, *, back: bool = False) -> tuple[Ring, ...]:
        """The states from the present one on, itself first. Raises RefusedError."""
        rings.refuse_foreign(self._cluster, self._stack, self._outputs)
        now = rings.configured(self._stack)[self._name]
        if now.is_stable and self._recall(_TARGET) == str(now.at_work):
            # The last step of a run that was cut off in it.
            return (now,)
        if back and now.is_stable:
            raise RefusedError(
                f"{self._name} has one generation, and no other to go back to; "
                f"for a new one: ./menagerie keys rotate {self._cluster} {self._name}",
                code="no-way-back",
            )
        return (now, *now.steps(back=back))

    def run(self, *, back: bool = False, wait: bool = False, pods_follow: bool = False) -> Rotated:
        """Go to the end. FailedError where workers wait for an operator.

        wait: also for tokens of a former key; FailedError without. pods_follow: an operator knows that pods that started
        long ago read the authorities again; FailedError without.
        """
        self._wait_for_tokens_too, self._pods_follow = wait, pods_follow
        self._again = f"./menagerie keys rotate {self._cluster} {self._name}{' --back' if back else ''}"
        began, *steps = self.plan(back=back)
        if began.is_stable and steps:
            self._refuse_unfinished()
        else:
            self._go_to(began)
        now = began
        self._remember(_TARGET, str((steps or [began])[-1].at_work))
        for step in steps:
            self._before(now, step)
            self._go_to(step)
            now = step
        if self._name in kubelets.RINGS:
            self._prove_kubelets(now, kubelets.Needs.as_now(self._name, self._told()))
        self._remember(_TARGET, _NONE)
        return Rotated(self._name, began, now, self._rewritten)

    def _refuse_unfinished(self) -> None:
        """RefusedError where the stack is not as its spec says, and the proof that hosts are as the stack."""
        if changes := self._stack.preview().changed:
            raise RefusedError(
                f"an update of {self._cluster} would change {changes} resources before any key is: bring it to its spec first, "
                f"./menagerie up {self._cluster} (./menagerie up {self._cluster} --dry-run shows what would change)",
                code="not-as-its-spec",
            )
        self._prove(None)

    def _go_to(self, ring: Ring) -> None:
        """Have a state proven, also one that a run was cut off in."""
        self._before_since(ring)
        rings.configure(self._stack, self._name, ring)
        self._tell(f"{self._name} {ring}: the stack is updated")
        _, self._outputs = self._stack.up()
        self._access = self._make_access(self._outputs)
        self._prove(reports.revisions(self._access))
        if self._name in published.FIELDS:
            self._prove_published()
        self._remember_since(ring)
        self._done(f"{self._name} {ring}")

    def _before_since(self, ring: Ring) -> None:
        """What must be known of a state although a run is cut off in it."""
        if self._name == "service-account" and ring.state == "promoted" and self._at_work_since(ring) is None:
            self._remember(_SINCE, f"{ring} {_BEGUN}")
        if self._name == "kubernetes-ca" and ring.is_stable:
            # The next generation may have this one's number again, and pods do not know it yet.
            self._remember(_SINCE, _NONE)

    def _remember_since(self, ring: Ring) -> None:
        """That all work in this state: of tokens' keys while both count, of what pods trust since both are told of."""
        tokens = self._name == "service-account" and self._both_have_worked(ring)
        told = self._name == "kubernetes-ca" and ring.state == "introduced"
        if (tokens or told) and self._at_work_since(ring) in (None, _BEGUN):
            self._remember(_SINCE, f"{ring} {datetime.now(UTC).isoformat(timespec='seconds')}")

    def _prove(self, since: dict[str, int] | None) -> None:
        """Wait until every host has said that it works with what the stack has for it."""
        values, api = reports.wanted(self._outputs), self._access.api()
        self._wait(lambda: reports.unproven(values, reports.read(self._access), reports.live_api_servers(api), since))

    def _prove_published(self) -> None:
        """Wait until whoever asks the cluster is told of this ring's authorities, and of no former one."""
        wanted, api = self._authorities(), self._access.api()
        self._wait(published.Published(self._name, wanted, api, self._settled_s).missing)
        if self._name == "kubernetes-ca":
            self._wait(lambda: trusted.missing(api, wanted))

    def _authorities(self) -> str:
        """Of this ring, PEM, the one that signs first."""
        return self._told()[self._name]

    def _told(self) -> dict[str, str]:
        """Ring -> the same, of all whose authorities the stack tells."""
        return {name: str(pem) for name, pem in json.loads(str(self._outputs["authorities"])).items()}

    def _wait(self, reason: Callable[[], str]) -> None:
        def missing() -> str:
            try:
                return reason()
            except (EtcdError, ApiException, urllib3.exceptions.HTTPError) as error:
                # The one that was asked may be restarting at this moment.
                return f"no answer: {error}"

        wait_until(missing, PATIENCE_S, self._tell, every_s=self._every_s, pause=self._pause)

    def _before(self, now: Ring, step: Ring) -> None:
        """What must be so, besides hosts, before a state is left for another."""
        if self._name == "encryption" and step.is_stable:
            key = key_name(step.at_work)
            etcd = EtcdClient(self._access, "main")
            self._rewritten += encryption.rewrite(etcd, self._access.api, key, self._cluster, self._tell)
            self._done(f"secrets are encrypted with {key}")
        if self._name == "service-account" and step.is_stable and self._both_have_worked(now):
            self._wait_for_tokens(now)
        if self._name in kubelets.RINGS and not now.is_stable:
            needs = kubelets.Needs.to_drop if step.is_stable else kubelets.Needs.to_turn
            self._prove_kubelets(now, needs(self._name, self._told()))
            if step.state == "promoted" and self._name == "kubernetes-ca":
                self._prove_pods(now)

    def _prove_kubelets(self, now: Ring, needs: kubelets.Needs) -> None:
        """Wait for kubelets that follow by themselves. FailedError for others: a run that waited would hold the cluster,
        and keep `configure` out."""

        def missing() -> str:
            late = kubelets.late(kubelets.said(self._access), needs)
            if not all(each.in_region for each in late):
                raise kubelets.behind(self._cluster, late, self._again)
            return kubelets.told(late)

        self._wait(missing)
        self._done(f"every kubelet follows {self._name} {now}")

    def _prove_pods(self, now: Ring) -> None:
        """Wait until pods that follow have followed. FailedError where some may not."""
        spread = datetime.fromisoformat(self._at_work_since(now) or "") + timedelta(seconds=self._spread_s)
        self._wait_until(spread, "pods have the cluster's authorities")
        if self._pods_follow:
            self._done(f"pods follow {self._name} {now}, by the operator's word")
            return
        if late := pods.late(self._access.api(), spread):
            raise pods.behind(late, spread, self._again)
        self._done(f"every pod follows {self._name} {now}")

    def _wait_for_tokens(self, now: Ring) -> None:
        since, api = datetime.fromisoformat(self._at_work_since(now) or ""), self._access.api()
        service_account.refuse_endless(self._cluster, api, since.timestamp())
        until = since + service_account.longest_life(api)
        if datetime.now(UTC) < until and not self._wait_for_tokens_too:
            raise FailedError(
                f"{self._name}: tokens of the former key may be in use until {until:%Y-%m-%d %H:%M} UTC; the new key signs "
                f"already. After that: ./menagerie keys rotate {self._cluster} {self._name} (or let it wait: --wait-for-tokens)",
                code="not-yet",
            )
        self._wait_until(until, "tokens have ended")

    def _wait_until(self, moment: datetime, what: str) -> None:
        def missing() -> str:
            left = moment - datetime.now(UTC)
            return f"{left // timedelta(minutes=1) + 1} minutes until {what}" if left > timedelta() else ""

        patience_s = max(0.0, (moment - datetime.now(UTC)).total_seconds()) + 60
        wait_until(missing, patience_s, self._tell, every_s=self._every_s, pause=self._pause)

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
