"""Rotates a key ring from one generation to the next, state by state (docs/how-to/keys.md).

For each state, the stack is updated, and then every host must prove that it uses the new state before the next one starts.
The states are in the stack's configuration, so an interrupted run can be resumed from any machine that has it.
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
from operations.keys import encryption, kubelets, metrics, pods, published, reports, rings, service_account, trusted
from operations.keys.rings import Stack
from stacks.backend import PROJECT

PATIENCE_S = 3600.0
"""Time-out for the proof of a state: hosts check every ten minutes, and restart one after another."""
_TARGET, _NONE = "rotating-to", "none"
"""Key of a run's target generation. With it, a run that was interrupted in its last step does not start another rotation."""
_SINCE, _BEGUN = "at-work-since", "begun"
"""Key of a ring's state, and since when all hosts have used it."""


@dataclass(frozen=True)
class Rotated:
    """began, ended: states of the ring. rewritten: how many Secrets were re-encrypted."""

    name: RingName
    began: Ring
    ended: Ring
    rewritten: int = 0


class Rotation:
    """The rotation of one ring of one cluster.

    access: builds the access from a stack's outputs, which change with the operator's certificates. tell: gets progress.
    done: gets each proven state; may raise to end the run there. pause: waits; may raise too. settled_s: how long the
    authorities published by API servers must stay unchanged. spread_s: until pods have a changed ConfigMap.
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
        """Return the states to go through, the current one first. Raises RefusedError."""
        rings.refuse_foreign(self._cluster, self._stack, self._outputs)
        now = rings.configured(self._stack)[self._name]
        if now.is_stable and self._recall(_TARGET) == str(now.at_work):
            # An earlier run was interrupted in its last step.
            return (now,)
        if back and now.is_stable:
            raise RefusedError(
                f"{self._name} has only one generation and can't go back; "
                f"for a new one, run: ./menagerie keys rotate {self._cluster} {self._name}",
                code="no-way-back",
            )
        return (now, *now.steps(back=back))

    def run(self, *, back: bool = False, wait: bool = False, pods_follow: bool = False) -> Rotated:
        """Run the rotation to its end. Raises FailedError if workers need an operator.

        wait: wait for tokens of a former key to expire, instead of raising FailedError. pods_follow: the operator confirms
        that old pods reload the authorities; without it, raises FailedError if there are any.
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
            self._prove_kubelets(now, kubelets.Needs.as_now(self._name, self._all_authorities()))
        self._remember(_TARGET, _NONE)
        return Rotated(self._name, began, now, self._rewritten)

    def _refuse_unfinished(self) -> None:
        """Raise RefusedError if the stack differs from its spec; then wait for the proof that hosts match the stack."""
        if changes := self._stack.preview().changed:
            raise RefusedError(
                f"the stack of {self._cluster} differs from its spec in {changes} resources; reconcile it first: "
                f"./menagerie up {self._cluster} (./menagerie up {self._cluster} --dry-run shows the changes)",
                code="not-as-its-spec",
            )
        self._prove(None)

    def _go_to(self, ring: Ring) -> None:
        """Apply a state and wait for its proof, also if an earlier run was interrupted in it."""
        self._before_since(ring)
        rings.configure(self._stack, self._name, ring)
        self._tell(f"{self._name} {ring}: updating the stack")
        _, self._outputs = self._stack.up()
        self._access = self._make_access(self._outputs)
        self._prove(reports.revisions(self._access))
        if self._name in published.FIELDS:
            self._prove_published()
        self._remember_since(ring)
        if self._name in metrics.RINGS:
            self._prove_metrics(ring)
        self._done(f"{self._name} {ring}")

    def _before_since(self, ring: Ring) -> None:
        """Record what must be known about a state even if the run is interrupted in it."""
        if self._name == "service-account" and ring.state == "promoted" and self._at_work_since(ring) is None:
            self._remember(_SINCE, f"{ring} {_BEGUN}")
        if self._name == "kubernetes-ca" and ring.is_stable:
            # The next generation may reuse this one's number, and pods do not know it yet.
            self._remember(_SINCE, _NONE)

    def _remember_since(self, ring: Ring) -> None:
        """Record since when all hosts use this state: for token keys, while both are valid; for the CA, since both
        are published."""
        tokens_in_use = self._name == "service-account" and self._both_have_worked(ring)
        is_published = self._name == "kubernetes-ca" and ring.state == "introduced"
        if (tokens_in_use or is_published) and self._at_work_since(ring) in (None, _BEGUN):
            self._remember(_SINCE, f"{ring} {datetime.now(UTC).isoformat(timespec='seconds')}")

    def _prove(self, since: dict[str, int] | None) -> None:
        """Wait until every host has reported that it uses the stack's current values."""
        values, api = reports.expected_digests(self._outputs), self._access.api()
        self._wait(lambda: reports.unproven(values, reports.read(self._access), reports.live_api_servers(api), since))

    def _prove_published(self) -> None:
        """Wait until the cluster publishes this ring's authorities and no former ones."""
        authorities, api = self._authorities(), self._access.api()
        self._wait(published.Published(self._name, authorities, api, self._settled_s).missing)
        if self._name == "kubernetes-ca":
            self._wait(lambda: trusted.missing(api, authorities))

    def _prove_metrics(self, ring: Ring) -> None:
        """Wait until metrics-server and API servers verify each other, and kubelets, by these authorities.

        Pods of metrics-server reread a certificate within three minutes, and authorities as late as other pods do.
        """
        settled_s = self._settled_s
        if not ring.is_stable:
            settled_s = 2 * settled_s if self._name == "kubernetes-ca" else self._spread_s
        keys = metrics.MetricsKeys(self._name, self._authorities(), self._access.api(), settled_s)
        self._wait(keys.missing)

    def _authorities(self) -> str:
        """Return this ring's authorities in PEM, signer first."""
        return self._all_authorities()[self._name]

    def _all_authorities(self) -> dict[str, str]:
        """Return ring -> authorities in PEM, signer first, for all rings in the stack's outputs."""
        return {name: str(pem) for name, pem in json.loads(str(self._outputs["authorities"])).items()}

    def _wait(self, reason: Callable[[], str]) -> None:
        def missing() -> str:
            try:
                return reason()
            except (EtcdError, ApiException, urllib3.exceptions.HTTPError) as error:
                # The server may be restarting.
                return f"no response: {error}"

        wait_until(missing, PATIENCE_S, self._tell, every_s=self._every_s, pause=self._pause)

    def _before(self, now: Ring, step: Ring) -> None:
        """Check or do what is needed, apart from hosts, before the next state."""
        if self._name == "encryption" and step.is_stable:
            key = key_name(step.at_work)
            etcd = EtcdClient(self._access, "main")
            self._rewritten += encryption.rewrite(etcd, self._access.api, key, self._cluster, self._tell)
            self._done(f"secrets are encrypted with {key}")
        if self._name == "service-account" and step.is_stable and self._both_have_worked(now):
            self._wait_for_tokens(now)
        if self._name in kubelets.RINGS and not now.is_stable:
            needs = kubelets.Needs.to_drop if step.is_stable else kubelets.Needs.to_turn
            self._prove_kubelets(now, needs(self._name, self._all_authorities()))
            if step.state == "promoted" and self._name == "kubernetes-ca":
                self._prove_pods(now)

    def _prove_kubelets(self, now: Ring, needs: kubelets.Needs) -> None:
        """Wait for kubelets that follow automatically. Raises FailedError for others: a run that waited for them would keep the
        cluster locked, and `configure` could not run."""

        def missing() -> str:
            late = kubelets.late(kubelets.kubelet_reports(self._access), needs)
            if not all(node.in_region for node in late):
                raise kubelets.behind(self._cluster, late, self._again)
            return kubelets.describe(late)

        self._wait(missing)
        self._done(f"every kubelet follows {self._name} {now}")

    def _prove_pods(self, now: Ring) -> None:
        """Wait until pods that reload the authorities have done so. Raises FailedError for pods that may not reload them."""
        spread = datetime.fromisoformat(self._at_work_since(now) or "") + timedelta(seconds=self._spread_s)
        self._wait_until(spread, "pods have the cluster's authorities")
        if self._pods_follow:
            self._done(f"pods follow {self._name} {now}, as the operator stated")
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
                f"already. Run then: ./menagerie keys rotate {self._cluster} {self._name} (or wait now: --wait-for-tokens)",
                code="not-yet",
            )
        self._wait_until(until, "old tokens have expired")

    def _wait_until(self, moment: datetime, what: str) -> None:
        def missing() -> str:
            left = moment - datetime.now(UTC)
            return f"{left // timedelta(minutes=1) + 1} minutes until {what}" if left > timedelta() else ""

        patience_s = max(0.0, (moment - datetime.now(UTC)).total_seconds()) + 60
        wait_until(missing, patience_s, self._tell, every_s=self._every_s, pause=self._pause)

    def _both_have_worked(self, ring: Ring) -> bool:
        """Return whether the newer of two generations has signed, so that its tokens are in use."""
        state = self._recall(_SINCE).partition(" ")[0]
        return state in (str(ring), str(ring.turned)) and not ring.is_stable

    def _at_work_since(self, ring: Ring) -> str | None:
        """Return since when all hosts use this state; `_BEGUN` if the state was started but not proven, None if it
        was not started."""
        state, _, since = self._recall(_SINCE).partition(" ")
        return since if state == str(ring) else None

    def _recall(self, what: str) -> str:
        """Return a value that an earlier run kept in the stack's configuration."""
        return self._stack.values().get(f"{what}-{self._name}", "")

    def _remember(self, what: str, value: str) -> None:
        self._stack.configure(PROJECT, f"{what}-{self._name}", value)
