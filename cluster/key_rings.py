"""Key rings: the generations of a cluster's authorities and keys that are in use, and the order in which they change.

A ring is written as its generations with commas between them, the one that signs or encrypts first:

    1      one generation
    1,2    2 is trusted and readable everywhere, 1 still signs and encrypts
    2,1    2 signs and encrypts, what 1 made still counts
    2      1 is not trusted any more

No state but these is reached, and each follows from its neighbour: every consumer can be a step behind and still
understand all others. kOps rotates its authorities by the same steps ("Rotating Secrets": distribute, promote, distrust).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, get_args

RingName = Literal[
    "encryption",
    "service-account",
    "etcd-main-ca",
    "etcd-events-ca",
    "front-proxy-ca",
    "kubernetes-ca",
    "kubelet-serving-ca",
]
RINGS: tuple[RingName, ...] = get_args(RingName)
FORMER = 0
"""The generation of `kubelet-serving-ca` that came before it had an authority of its own: the one of `kubernetes-ca`."""
WITH_FORMER: tuple[RingName, ...] = ("kubelet-serving-ca",)


@dataclass(frozen=True)
class Ring:
    """generations: in use, the one at work first; one, or two with neighbouring numbers."""

    generations: tuple[int, ...] = (1,)

    def __post_init__(self) -> None:
        numbers = self.generations
        if (
            not 1 <= len(numbers) <= 2
            or min(numbers) < FORMER
            or (len(numbers) == 2 and abs(numbers[0] - numbers[1]) != 1)
        ):
            raise ValueError(f"{self} is no state of a key ring: one generation, or two neighbours, 1,2 or 2,1")

    def __str__(self) -> str:
        return ",".join(map(str, self.generations))

    @classmethod
    def parse(cls, text: str) -> Ring:
        """The inverse of ``str``. ValueError where it is anything else."""
        if not re.fullmatch(r"[0-9]{1,6}(,[0-9]{1,6})?", text):
            raise ValueError(f"{text!r} is no state of a key ring: one generation, or two neighbours, 1,2 or 2,1")
        return cls(tuple(int(number) for number in text.split(",")))

    @classmethod
    def of(cls, name: RingName, text: str | None) -> Ring:
        """The state that is written down for a ring; the first generation where nothing is. ValueError for no state of it."""
        found = cls.parse(text) if text else cls()
        if FORMER in found.generations and name not in WITH_FORMER:
            raise ValueError(f"{found} is no state of {name}, whose generations begin with 1")
        return found

    @property
    def at_work(self) -> int:
        """The generation that signs and encrypts."""
        return self.generations[0]

    @property
    def newest(self) -> int:
        return max(self.generations)

    @property
    def is_stable(self) -> bool:
        return len(self.generations) == 1

    @property
    def state(self) -> Literal["stable", "introduced", "promoted"]:
        if self.is_stable:
            return "stable"
        return "promoted" if self.at_work == self.newest else "introduced"

    @property
    def is_carried_over(self) -> bool:
        """Whether nothing counts any more of what was there before the ring had an authority of its own."""
        return FORMER not in self.generations

    @property
    def next(self) -> Ring:
        """The state after this one, on the way to one generation more."""
        if self.is_stable:
            return Ring((self.at_work, self.at_work + 1))
        return Ring((self.newest,)) if self.state == "promoted" else self.turned

    @property
    def turned(self) -> Ring:
        """The same two generations with the other at work."""
        return Ring(self.generations[::-1])

    @property
    def back(self) -> Ring | None:
        """The state before this one; None where there is only one generation, whose predecessor is gone."""
        if self.is_stable:
            return None
        return Ring((self.at_work,)) if self.state == "introduced" else self.turned

    def steps(self, *, back: bool = False) -> tuple[Ring, ...]:
        """The states from here to the end of the rotation, or back to its beginning; without this one."""
        following = self.back if back else self.next
        if following is None:
            return ()
        return (following,) if following.is_stable else (following, *following.steps(back=back))

    def is_neighbour(self, other: Ring) -> bool:
        """Whether one of the two follows the other by one step."""
        return other in (self.next, self.back) or self in (other.next, other.back)


def key_name(generation: int) -> str:
    """Of an encryption key, as the API server writes it into etcd before what it encrypts."""
    return f"key-{generation}"
