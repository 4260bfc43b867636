"""Rounds without a cluster: the directory's secret, and what a round's outcome is called."""

from __future__ import annotations

from pathlib import Path

import pytest

from cluster.errors import FailedError
from controllers.program.work import Outcome, TenancySync


class Nowhere:
    """An access that nobody may use."""

    def api(self, *, once: bool = False, connections: int | None = None) -> object:
        raise AssertionError("nothing is asked yet")


def test_a_password_is_read_from_its_file_each_time(tmp_path: Path) -> None:
    work = TenancySync(tmp_path / "cluster.yaml", tmp_path, Nowhere())  # type: ignore[arg-type]
    with pytest.raises(FailedError, match="secret ldap is not here .*; menagerie controllers apply brings it"):
        work._secret("ldap")
    for word in ("one", "another"):
        (tmp_path / "ldap").write_text(f"{word}\n")
        assert work._secret("ldap") == word


def test_a_round_has_failed_before_it_was_refused_before_it_is_done() -> None:
    assert [Outcome().end, Outcome(refused=("x",)).end, Outcome(failed=("y",), refused=("x",)).end] == [
        "done",
        "refused",
        "failed",
    ]
    every = Outcome(failed=("a",), refused=("b",), undecided=("c",)).troubles()
    assert every == ("failed: a", "refused: b", "to be decided: c")
