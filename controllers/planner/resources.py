"""Amounts of resources, under Kubernetes' names and in whole units, so that rounding can't make a pod fit.

cpu is in thousandths, memory and ephemeral-storage in MiB, everything else in pieces. All kinds of GPUs have the one name that
their device plugin uses; a label of the pool tells the kind.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

CPU, MEMORY, STORAGE, PODS, GPU = "cpu", "memory", "ephemeral-storage", "pods", "nvidia.com/gpu"
APART = "apart:"
"""Prefix of the resource for a group whose pods never share a host: each host has one piece."""


@dataclass(frozen=True, slots=True)
class Resources:
    """Amounts by name, sorted, without zeros. Errors: raises ValueError for negative amounts."""

    amounts: tuple[tuple[str, int], ...] = ()

    @classmethod
    def of(cls, amounts: Mapping[str, int]) -> Resources:
        """``of({"cpu": 4000, "memory": 8192})``: four CPUs, 8 GiB."""
        return cls(tuple(sorted((name, amount) for name, amount in amounts.items() if amount)))

    def __post_init__(self) -> None:
        if any(amount < 0 for _, amount in self.amounts):
            raise ValueError(f"negative amount of a resource: {dict(self.amounts)}")

    def __getitem__(self, name: str) -> int:
        return next((amount for key, amount in self.amounts if key == name), 0)

    def __iter__(self) -> Iterator[str]:
        return (name for name, _ in self.amounts)


def describe(name: str, amount: int) -> str:
    """Return an amount as reasons show it: ``1 GPU``, ``2.5 CPUs``, ``256 GiB of memory``."""
    if name in (MEMORY, STORAGE):
        size = f"{amount / 1024:g} GiB" if amount >= 1024 else f"{amount} MiB"
        return f"{size} of {'memory' if name == MEMORY else 'local storage'}"
    number = f"{amount / 1000:g}" if name == CPU else str(amount)
    word = {CPU: "CPU", GPU: "GPU", PODS: "pod"}.get(name)
    if word is None:
        return f"{number} {name}"
    return f"{number} {word}" if number == "1" else f"{number} {word}s"
