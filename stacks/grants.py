"""Grants that take minutes to work: what needs one is tried again until the cloud applies it.

A cloud accepts a role assignment at once and applies it later. Until then it refuses what depends on it, and a repeat
works. The engine repeats an operation if an error hook of the program asks for it (pulumi 3.259,
pkg/resource/deploy/retries.go). A hook runs in the program: it needs no credentials, and works with every CLI.

Nothing is waited for on AWS. Its provider itself retries what uses a profile that is not known everywhere yet
(terraform-provider-aws, "Invalid IAM Instance Profile" in internal/service/autoscaling/group.go).
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pulumi

_PAUSES_S = (5, 10, 20, 30)
"""Before each new try; the last one is repeated. The engine asks a hook at most 100 times, so they must add up to `within_s`."""


@dataclass(frozen=True)
class SlowGrants:
    """How a cloud behaves. within_s: the longest time that a grant may take. refusals: patterns of what it says until then.

    partial: pattern of errors of resources that exist but failed. Creating one again would be refused, and the engine would
    then lose it.
    """

    cloud: str
    within_s: int
    refusals: tuple[str, ...]
    partial: str

    def is_refusal(self, error: str) -> bool:
        """Whether an error says that a grant is missing, which it also does while one does not work yet."""
        return any(re.search(pattern, error) for pattern in self.refusals)


class Clock:
    """Seconds, and waiting for them."""

    def now(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class SimulatedClock(Clock):
    """Time that only passes by sleeping, for simulated clouds."""

    def __init__(self) -> None:
        self._now = 0.0

    def now(self) -> float:
        return self._now

    async def sleep(self, seconds: float) -> None:
        self._now += seconds
        await asyncio.sleep(0)


class Wait:
    """What the engine asks when a resource fails that needs a grant. clock: of all of them; the engine has no argument for it."""

    clock = Clock()

    def __init__(self, grant: str, slow: SlowGrants) -> None:
        self._grant, self._slow = grant, slow
        self._since: dict[str, float] = {}

    async def __call__(self, failed: pulumi.ErrorHookArgs) -> bool:
        """Wait and return True to try once more, or False for an error that is about something else. Raises TimeoutError at the end."""
        error = failed.errors[0]
        if failed.failed_operation == "delete" or not self._slow.is_refusal(error):
            return False
        if failed.failed_operation == "create" and re.search(self._slow.partial, error):
            pulumi.log.warn(f"{failed.name} exists, but could not use its grant yet ({self._grant}); run this again")
            return False
        waited = self.clock.now() - self._since.setdefault(failed.urn, self.clock.now())
        left = self._slow.within_s - waited
        if left <= 0:
            raise TimeoutError(self._despair(waited, error))
        pause = min(_PAUSES_S[min(len(failed.errors), len(_PAUSES_S)) - 1], left)
        # Ephemeral: progress displays show it, and the summary of a failed run does not repeat it.
        pulumi.log.info(
            f"{failed.name} waits until a grant works: {self._grant}; try {len(failed.errors)} was refused after "
            f"{_span(waited)}, the next is in {_span(pause)}, for {_span(left)} at most",
            ephemeral=True,
        )
        await self.clock.sleep(pause)
        return True

    def _despair(self, waited: float, error: str) -> str:
        return (
            f"the grant does not work after {_span(waited)}: {self._grant}. Look whether it exists and whether a policy of "
            f"your organisation denies it; then run the same command again, which continues here. {self._slow.cloud} said: {error}"
        )


def after(name: str, granted: pulumi.Resource, grant: str, slow: SlowGrants) -> pulumi.ResourceOptions:
    """Return options for resources that need a grant: they follow it, and wait until it works.

    name: of the hook, unique in the stack; the state keeps it. grant: who may do what, for people. Call it once for each grant.
    """
    hook = pulumi.ErrorHook(f"waits-for-{name}", Wait(grant, slow))
    return pulumi.ResourceOptions(depends_on=[granted], hooks=pulumi.ResourceHookBinding(on_error=[hook]))


@contextmanager
def simulated_time() -> Iterator[None]:
    """Let waiting for grants take no time for a block."""
    before, Wait.clock = Wait.clock, SimulatedClock()
    try:
        yield
    finally:
        Wait.clock = before


def _span(seconds: float) -> str:
    return f"{seconds / 60:.0f} min" if seconds >= 120 else f"{seconds:.0f} s"
