"""Parquet of a day: the rows and types of the JSON, and the same bytes again."""

from __future__ import annotations

import io
import json

from arro3.io import read_parquet

from controllers.bookkeeping.parquet import to_parquet
from controllers.metering import day as days
from controllers.metering.day import COLUMNS, Made
from controllers.metering.facts import PriceFact, SpaceFact
from tests.metering.lives import DAY, START, entry, history, host, pod

KNOWN = (
    entry(START, "h1", host("robotics")),
    entry(START, "team-robotics", SpaceFact("röbotics")),
    entry(START, "u1", pod("h1", 3)),
    entry(START, "gpu", PriceFact(98_320_000, "list")),
)


def test_the_table_has_the_rows_of_the_json() -> None:
    day = days.make("lab", DAY, history(*KNOWN), Made(START, 1, "0"))
    table = read_parquet(io.BytesIO(to_parquet(day))).read_all()
    columns = [table[name].to_pylist() for name in COLUMNS]
    assert [list(row) for row in zip(*columns, strict=True)] == day.document["rows"]
    assert len(day.document["rows"]) == 48
    assert json.loads(table.schema.metadata_str["menagerie"])["day"] == "2026-11-27"


def test_the_same_day_makes_the_same_bytes() -> None:
    made = {to_parquet(days.make("lab", DAY, history(*KNOWN), Made(START, 1, "0"))) for _ in range(20)}
    assert len(made) == 1


def test_a_day_without_rows_is_a_table_without_rows() -> None:
    day = days.make("lab", DAY, history(), Made(START, 1, "0"))
    assert read_parquet(io.BytesIO(to_parquet(day))).read_all().num_rows == 0
    assert day.missing == ("no host was known",)
