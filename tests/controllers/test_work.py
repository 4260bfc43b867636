"""Rounds without a cluster: the directory's secret, and the name of a round's outcome."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from cluster.errors import FailedError
from controllers.program.work import RoundOutcome, TenancySync


class Nowhere:
    """Access that must not be used."""

    def api(self, *, once: bool = False, connections: int | None = None) -> object:
        raise AssertionError("no request is expected")


def test_a_password_is_read_from_its_file_each_time(tmp_path: Path) -> None:
    work = TenancySync(tmp_path / "cluster.yaml", tmp_path, Nowhere())  # type: ignore[arg-type]
    with pytest.raises(FailedError, match="secret ldap can't be read .*; `menagerie controllers apply` delivers it"):
        work._secret("ldap")
    for word in ("one", "another"):
        (tmp_path / "ldap").write_text(f"{word}\n")
        assert work._secret("ldap") == word


def test_failed_takes_precedence_over_refused_and_refused_over_done() -> None:
    assert [RoundOutcome().end, RoundOutcome(refused=("x",)).end, RoundOutcome(failed=("y",), refused=("x",)).end] == [
        "done",
        "refused",
        "failed",
    ]
    every = RoundOutcome(failed=("a",), refused=("b",), undecided=("c",)).troubles()
    assert every == (
        (logging.ERROR, "failed: a"),
        (logging.ERROR, "refused: b"),
        (logging.WARNING, "needs a decision: c"),
    )
