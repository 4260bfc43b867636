"""A day's rows as a Parquet file, for tools that read tables. The same day makes the same bytes."""

from __future__ import annotations

import io
from typing import Any

from arro3.core import Array, DataType, Table
from arro3.io import write_parquet

from controllers.metering.day import COLUMNS, Day
from controllers.metering.journal import canonical

_ABOUT = "menagerie"
"""The only key of the file's metadata, with a JSON document: the library writes several in another order each time."""
_TEXTS = ("team", "namespace", "user", "pool", "use")


def to_parquet(day: Day) -> bytes:
    """Return the rows as Parquet: texts as UTF-8, amounts as 64-bit integers. The columns are those of the JSON."""
    rows = day.document["rows"]
    columns: dict[str, Any] = {
        name: Array([row[at] for row in rows], type=DataType.utf8() if name in _TEXTS else DataType.int64())
        for at, name in enumerate(COLUMNS)
    }
    about = {key: day.document[key] for key in ("cluster", "day", "revision", "complete")}
    file = io.BytesIO()
    # A library's own name and version here would change the bytes with each release of it.
    write_parquet(
        Table.from_pydict(columns),
        file,
        compression="zstd(3)",
        created_by="menagerie",
        key_value_metadata={_ABOUT: canonical(about).decode()},
    )
    return file.getvalue()
