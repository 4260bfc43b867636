"""The journal's segments: what changed between two moments, or everything at one. Each is an object that is never changed.

A segment names the one before it, so that a missing one is noticed. The key sorts by time; a key that exists already means
that another process writes too.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from cluster import shared
from controllers.metering.facts import Entry, from_json, to_json

PREFIX = "ledger/journal"
DAY_S = 86_400
_VERSION = 1
_WHOLE = "-whole"


@dataclass(frozen=True)
class Segment:
    """A segment. Times are Unix time in whole seconds.

    start, end: in this interval nothing was missed; equal if what happened before `end` was not watched. before: the end of
    the segment before it, 0 for the first. whole: it has every fact that holds at `end`. versions: kind -> the resource
    version from which to go on.
    """

    cluster: str
    start: int
    end: int
    before: int
    whole: bool
    entries: tuple[Entry, ...]
    versions: Mapping[str, str] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """Return its key: the folder of its day, then the time of its end."""
        return f"{folder(self.end)}/{self.end:011d}{_WHOLE if self.whole else ''}.json"


def folder(moment: int) -> str:
    """Return the folder of segments that end in the day of a moment (UTC)."""
    return f"{PREFIX}/{datetime.fromtimestamp(moment, UTC):%Y-%m-%d}"


def end_of(key: str) -> int:
    """Return the end of the segment with a key. Errors: raises ValueError if it is no segment's."""
    return int(key.rpartition("/")[2].removesuffix(".json").removesuffix(_WHOLE))


def is_whole(key: str) -> bool:
    """Return whether the segment with a key has every fact."""
    return key.endswith(f"{_WHOLE}.json")


def write(segment: Segment) -> bytes:
    """Return the segment as JSON: always the same bytes for the same segment."""
    document = {
        shared.KEY: _VERSION,
        "cluster": segment.cluster,
        "start": segment.start,
        "end": segment.end,
        "before": segment.before,
        "whole": segment.whole,
        "versions": dict(segment.versions),
        "entries": [to_json(entry) for entry in segment.entries],
    }
    return canonical(document)


def read(data: bytes, key: str) -> Segment:
    """Read a segment. Errors: raises NewerDataError, and ValueError that names the key if it is none."""
    try:
        document = json.loads(data)
        shared.readable(f"segment {key}", document, _VERSION)
        entries = tuple(from_json(array) for array in document["entries"])
        start, end, before = (int(document[name]) for name in ("start", "end", "before"))
        return Segment(document["cluster"], start, end, before, bool(document["whole"]), entries, document["versions"])
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise ValueError(f"{key} is not a segment of a ledger's journal: {error}") from None


def canonical(document: object) -> bytes:
    """Return a document as JSON in one form: keys sorted, no spaces, UTF-8, a line break at the end."""
    return (json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False) + "\n").encode()


def days(start: int, end: int) -> Iterator[int]:
    """Yield the beginning of each UTC day that overlaps an interval."""
    yield from range(start - start % DAY_S, end, DAY_S)
