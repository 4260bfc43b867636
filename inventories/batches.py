"""Which hosts one ansible-playbook takes at a time, and after how many failures no further ones are begun. No I/O.

Ansible's own words for it do not do: `serial` is evaluated without the inventory's variables, and the strategies in
which hosts do not wait for each other take no `max_fail_percentage` (ansible.plugins.strategy.free warns of it).
A share of its own inventory keeps the cost of a host the same in a fleet of any size: with every task Ansible lists
all hosts of a play anew, and looks at each of them for what it could do next.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

SHARE = 200
"""Hosts that one ansible-playbook takes where nobody says how many: four times its forks, so that few stand idle at
the end of a share, and few enough that what grows with the square of their number is small."""
_AMOUNT = re.compile(r"([1-9][0-9]{0,5}|0)(%?)")


class AmountError(Exception):
    """Neither a number nor a percentage."""


@dataclass(frozen=True)
class Amount:
    """A number, or a share of all in percent."""

    number: int
    is_percent: bool = False

    @classmethod
    def parse(cls, text: str, *, least: int = 0) -> Amount:
        """AmountError unless it is a number or a percentage."""
        found = _AMOUNT.fullmatch(text.strip())
        amount = cls(int(found[1]), bool(found[2])) if found else None
        if amount is None or amount.number < least or (amount.is_percent and amount.number > 100):
            raise AmountError(f'"{text}" is neither a number, {least} or more, nor a percentage; write 50 or 10%')
        return amount

    def of(self, total: int) -> int:
        """How many that is, rounded down."""
        return total * self.number // 100 if self.is_percent else self.number

    def at_least_one(self, total: int) -> int:
        """How many to take at a time."""
        return max(self.of(total), 1)


def batches(hosts: Sequence[str], size: Amount | None) -> Iterator[tuple[str, ...]]:
    """The hosts in their order, a batch at a time; of one host at least."""
    step = size.at_least_one(len(hosts)) if size else SHARE
    for start in range(0, len(hosts), step):
        yield tuple(hosts[start : start + step])


def stops(failed: int, total: int, limit: Amount | None, last_batch: tuple[int, int]) -> str:
    """Why no further batch is begun, "" when one is. last_batch: how many of its hosts failed, and of how many."""
    if limit is not None and failed > limit.of(total):
        return f"{failed} hosts failed, more than --max-failures allows ({limit.of(total)})"
    if limit is None and last_batch[0] == last_batch[1]:
        return f"all {last_batch[1]} hosts of a batch failed"
    return ""
