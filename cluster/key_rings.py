"""Key rings: the generations in use of a cluster's CAs and keys, and the steps of their rotation.

A ring is written as its generations, separated by commas, starting with the one that signs or encrypts:

    1      one generation
    1,2    2 is trusted and readable everywhere, 1 still signs and encrypts
    2,1    2 signs and encrypts, what 1 signed or encrypted is still valid
    2      1 isn't trusted any more

There are no other states, and each step leads to a neighbouring one: every consumer can be a step behind and still
understand all others. kOps rotates its CAs in the same steps ("Rotating Secrets": distribute, promote, distrust).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
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
"""The generation of `kubelet-serving-ca` from before it had its own CA: that of `kubernetes-ca`."""
WITH_FORMER: tuple[RingName, ...] = ("kubelet-serving-ca",)
COMMON_NAMES: Mapping[RingName, str] = {
    "kubernetes-ca": "kubernetes",
    "kubelet-serving-ca": "kubelet-serving",
    "front-proxy-ca": "front-proxy",
    "etcd-main-ca": "etcd-main",
    "etcd-events-ca": "etcd-events",
}
"""Of the first authority of a ring; later generations append their number."""


@dataclass(frozen=True)
class Ring:
    """A state of a key ring.

    generations: those in use, the active one first: one, or two with neighbouring numbers.
    """

    generations: tuple[int, ...] = (1,)

    def __post_init__(self) -> None:
        numbers = self.generations
        if (
            not 1 <= len(numbers) <= 2
            or min(numbers) < FORMER
            or (len(numbers) == 2 and abs(numbers[0] - numbers[1]) != 1)
        ):
            raise ValueError(
                f"{self} isn't a state of a key ring: write one generation, or two neighbours such as 1,2 or 2,1"
            )

    def __str__(self) -> str:
        return ",".join(map(str, self.generations))

    @classmethod
    def parse(cls, text: str) -> Ring:
        """Parse the form of ``str``. Raises ValueError for anything else."""
        if not re.fullmatch(r"[0-9]{1,6}(,[0-9]{1,6})?", text):
            raise ValueError(
                f"{text!r} isn't a state of a key ring: write one generation, or two neighbours such as 1,2 or 2,1"
            )
        return cls(tuple(int(number) for number in text.split(",")))

    @classmethod
    def of(cls, name: RingName, text: str | None) -> Ring:
        """Parse the recorded state of a ring; the first generation if there is none. Raises ValueError if not valid."""
        ring = cls.parse(text) if text else cls()
        if FORMER in ring.generations and name not in WITH_FORMER:
            raise ValueError(f"{ring} isn't a state of {name}, whose generations start at 1")
        return ring

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
        """Whether nothing from before the ring had its own CA is in use any more."""
        return FORMER not in self.generations

    @property
    def next(self) -> Ring:
        """The state after this one, on the way to the next generation."""
        if self.is_stable:
            return Ring((self.at_work, self.at_work + 1))
        return Ring((self.newest,)) if self.state == "promoted" else self.turned

    @property
    def turned(self) -> Ring:
        """The same two generations with the other one active."""
        return Ring(self.generations[::-1])

    @property
    def back(self) -> Ring | None:
        """The state before this one; None with only one generation, as its predecessor is gone."""
        if self.is_stable:
            return None
        return Ring((self.at_work,)) if self.state == "introduced" else self.turned

    def steps(self, *, back: bool = False) -> tuple[Ring, ...]:
        """Return the states from here to the end of the rotation, or back to its start, without this one."""
        following = self.back if back else self.next
        if following is None:
            return ()
        return (following,) if following.is_stable else (following, *following.steps(back=back))

    def is_neighbour(self, other: Ring) -> bool:
        """Return whether the two states are one step apart."""
        return other in (self.next, self.back) or self in (other.next, other.back)


def key_name(generation: int) -> str:
    """Return the name of an encryption key, which the API server writes into etcd before encrypted data."""
    return f"key-{generation}"


def ring_key(name: RingName) -> str:
    """Return the key of a ring's state in the stack's configuration, in the namespace of our settings."""
    return f"ring-{name}"
