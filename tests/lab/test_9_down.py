"""After the last test: nothing of the lab remains on the machine."""

from __future__ import annotations

import pytest

from tests import beside
from tests.lab.support import ROOT, Run, menagerie, traces

pytestmark = [pytest.mark.lab, pytest.mark.timeout(3600)]


def test_lab_down_leaves_nothing(before: dict[str, set[str]], lab: Run) -> None:
    down = menagerie("destroy", "lab", "--yes")
    assert down.code == 0, down.err
    beside.wait()  # what others create meanwhile is not a trace of a lab
    assert {kind: left - before[kind] for kind, left in traces().items()} == {kind: set() for kind in before}
    assert not (ROOT / ".menagerie" / "lab").exists()


def test_status_of_a_destroyed_cluster_says_what_to_run(lab: Run) -> None:
    status = menagerie("status", "lab")
    assert status.code == 1
    assert "menagerie up lab" in status.err
