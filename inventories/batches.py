"""Batches of hosts for ansible-playbook, and the failures after which no further batch starts. No I/O.

Ansible's own settings aren't enough: `serial` is evaluated without the inventory's variables, and strategies in
which hosts don't wait for each other don't support `max_fail_percentage` (ansible.plugins.strategy.free warns of it).
A separate inventory per batch keeps the cost of a host the same in a fleet of any size: with every task Ansible lists
all hosts of a play again, and checks each of them for its next task.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

SHARE = 200
"""Default size of a batch: four times ansible-playbook's forks, so that few are idle at the end of a batch, and small enough
that costs which grow with the square of the number stay low."""
_AMOUNT = re.compile(r"([1-9][0-9]{0,5}|0)(%?)")


class AmountError(Exception):
    """Neither a number nor a percentage."""


@dataclass(frozen=True)
class Amount:
    """A number, or a percentage of all."""

    number: int
    is_percent: bool = False

    @classmethod
    def parse(cls, text: str, *, least: int = 0) -> Amount:
        """Parse a number or a percentage. Raises AmountError for anything else."""
        match = _AMOUNT.fullmatch(text.strip())
        amount = cls(int(match[1]), bool(match[2])) if match else None
        if amount is None or amount.number < least or (amount.is_percent and amount.number > 100):
            raise AmountError(f'"{text}" is neither a number of at least {least} nor a percentage; write 50 or 10%')
        return amount

    def __str__(self) -> str:
        return f"{self.number}{'%' * self.is_percent}"

    def of(self, total: int) -> int:
        """Return how many of `total` that is, rounded down."""
        return total * self.number // 100 if self.is_percent else self.number

    def at_least_one(self, total: int) -> int:
        """Return how many of `total` that is, but at least one."""
        return max(self.of(total), 1)


def batches(hosts: Sequence[str], size: Amount | None) -> Iterator[tuple[str, ...]]:
    """Yield the hosts in order, in batches of at least one host."""
    step = size.at_least_one(len(hosts)) if size else SHARE
    for start in range(0, len(hosts), step):
        yield tuple(hosts[start : start + step])


def stops(failed: int, total: int, limit: Amount | None, last_batch: tuple[int, int]) -> str:
    """Return why no further batch starts; "" if one does. last_batch: (failed hosts of the last batch, its size)."""
    if limit is not None and failed > limit.of(total):
        return f"{failed} hosts failed, more than --max-failures allows ({limit.of(total)})"
    if limit is None and last_batch[0] == last_batch[1]:
        return f"all {last_batch[1]} hosts of a batch failed"
    return ""
