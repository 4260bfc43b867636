"""INV-011: the kind of on-prem machine that a pool names."""

from __future__ import annotations

from collections.abc import Iterator

from cluster import hardware
from cluster.check.finding import Finding, Rule, Subject
from cluster.document import Where
from cluster.fields import did_you_mean, near
from cluster.pools import Pool

_OF_SITES = ("hardware", "driver_branch", "preflight")


def known_kind(subject: Subject) -> Iterator[Finding]:
    """A machine's hardware is known by its kind at a site, and by its machine type in a cloud."""
    for name, pool in subject.spec.pools.items():
        where: Where = ("pools", name)
        if pool.site is None:
            yield from _in_region(name, pool)
        elif pool.hardware is None and pool.driver_branch is not None:
            message = f"pools.{name} has driver_branch and no hardware; without a kind of machine, GPUs aren't checked"
            hint = "add hardware, or remove driver_branch"
            yield Finding((*where, "driver_branch"), message, hint, also=((*where, "hardware"),))
        elif pool.hardware is not None and pool.hardware not in (kinds := hardware.kinds()):
            best = near(pool.hardware, kinds)
            likely = did_you_mean(pool.hardware, kinds)
            message = f"pools.{name} has hardware {pool.hardware}, which isn't a known kind of machine{likely}"
            hint = f"write {best[0] if best else 'one of ' + ', '.join(kinds)}, or add it to cluster/hardware/machines.yaml"
            yield Finding((*where, "hardware"), message, hint)


def _in_region(name: str, pool: Pool) -> Iterator[Finding]:
    where: Where = ("pools", name)
    for key in _OF_SITES:
        if key in pool.model_fields_set and pool.machine is not None:
            message = f"pools.{name} is in the region and has {key}, which is only for machines at a site"
            yield Finding((*where, key), message, f"remove {key}", also=((*where, "site"), (*where, "machine")))


RULES: tuple[tuple[str, Rule], ...] = (("INV-011", known_kind),)
