"""The bench of the ledger: its journal closes, and only the whole number of nodes has aims."""

from __future__ import annotations

from pathlib import Path

import pytest

from cluster.errors import FailedError
from tests.bench import ledger
from tests.bench.ledger import AIM_MB, AIM_S, NODES, count, summary, write


def test_a_small_journal_is_counted_and_closes(tmp_path: Path) -> None:
    pods = write(tmp_path, 3)
    assert pods > 3 * ledger.DAEMONS
    taken = count(tmp_path)
    assert taken["segments"] == 1 + 26 * 60
    assert 0 < taken["parquet_mb"] < taken["json_mb"]


def test_a_day_that_does_not_close_is_no_figure(tmp_path: Path) -> None:
    write(tmp_path, 1)
    for segment in sorted(tmp_path.glob("ledger/journal/2026-11-26/*.json"))[100:200]:
        segment.unlink()
    with pytest.raises(FailedError, match="a part of the journal is missing"):
        count(tmp_path)


def test_only_the_whole_number_of_nodes_has_aims() -> None:
    taken = [{"seconds": 1.0, "cpu": 1.0, "mb": 1.0, "json_mb": 1.0, "parquet_mb": 1.0, "segments": 1.0}]
    assert [figure.aim for figure in summary(NODES, 9, taken)] == [AIM_S, None, AIM_MB, None, None]
    assert {figure.aim for figure in summary(10, 9, taken)} == {None}
