"""The counters that a node publishes of its pods' packets, as JSON in an annotation of its Node. Pure.

The document is that of `menagerie-traffic show --json`, with two more keys: `at`, when it was read (Unix time), and `life`, which changes
when the counters begin again. Both may be missing. Root on a node may write anything there, so every part is checked.
"""

from __future__ import annotations

import json
from typing import Any

from controllers.metering.facts import WAYS, CountersFact

ANNOTATION = "menagerie.dev/traffic"
MOST_BYTES = 2**60
"""A day's amounts of a cluster must fit into 64 bits."""
MOST_SPACES = 500
"""A node has at most some hundred pods."""
_LONGEST = 63
_AT = {way: at for at, way in enumerate(WAYS)}


def read(text: str) -> tuple[int | None, CountersFact]:
    """Return (when it was read, counters). Errors: raises ValueError that says what is wrong."""
    try:
        document = json.loads(text)
        counts = _counts(document["counters"])
        life, resets, at = str(document.get("life", ""))[:_LONGEST], int(document.get("resets", 0)), document.get("at")
        moment = None if at is None else int(at)
    except (KeyError, TypeError, AttributeError, OverflowError, ValueError) as error:
        raise ValueError(f"annotation {ANNOTATION} has no counters: {error!r}") from None
    return moment, CountersFact(life, min(max(resets, 0), MOST_BYTES), counts)


def _counts(counters: Any) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """Return (namespace, bytes in the order of `WAYS`), sorted."""
    spaces: dict[str, list[int | None]] = {}
    for counter in counters:
        namespace, at, count = _count(counter)
        own = spaces.setdefault(namespace, [None] * len(WAYS))
        if own[at] is not None:
            raise ValueError(f"{str(counter)[:200]} is there twice")
        own[at] = count
    if len(spaces) > MOST_SPACES:
        raise ValueError(f"{len(spaces)} namespaces are more than {MOST_SPACES}")
    return tuple((namespace, tuple(count or 0 for count in own)) for namespace, own in sorted(spaces.items()))


def _count(counter: Any) -> tuple[str, int, int]:
    """Return (namespace, place in `WAYS`, bytes)."""
    namespace, at, count = (
        counter["namespace"] or "",
        _AT.get((counter["direction"], counter["class"])),
        counter["bytes"],
    )
    is_name = isinstance(namespace, str) and len(namespace) <= _LONGEST
    is_whole = isinstance(count, int) and not isinstance(count, bool) and 0 <= count <= MOST_BYTES
    if not is_name or at is None or not is_whole:
        raise ValueError(f"{str(counter)[:200]} is no counter")
    return namespace, at, count
