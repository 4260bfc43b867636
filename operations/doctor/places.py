"""Whether the zones of the plan offer its machine types: the comparison that all clouds share."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence

from cluster.needs import Use
from operations.doctor.model import Answer, ok, wrong


def answers(
    used: Sequence[Use], offered: Callable[[str], Collection[str]], where: Callable[[str], str]
) -> Iterator[Answer]:
    """Yield an answer for each use. offered: machine type -> zones that offer it. where: the command that lists them.

    A pool that names no zones needs one of the control plane's; everything else needs each of its own.
    """
    for use in used:
        zones = set(offered(use.machine))
        lacking = [zone for zone in use.zones if zone not in zones]
        needed = (
            f"{use.what}: {use.machine} in {', '.join(use.zones) if use.everywhere else f'one of {_list(use.zones)}'}"
        )
        about = f"{use.machine} for {use.what}"
        if not lacking:
            yield ok("offered in every zone", needed, about=about)
        elif not use.everywhere and len(lacking) < len(use.zones):
            yield ok(f"offered, except in {_list(lacking)}: the pool uses the other zones", needed, about=about)
        else:
            elsewhere = f"; it is offered in {_list(sorted(zones))}" if zones else ""
            yield wrong(f"not offered in {_list(lacking)}{elsewhere}", where(use.machine), needed=needed, about=about)


def _list(zones: Sequence[str]) -> str:
    return ", ".join(zones)
