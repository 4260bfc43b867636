"""After the last test: nothing of the lab is left on the machine."""

from __future__ import annotations

import pytest

from tests import beside
from tests.lab.support import ROOT, Run, menagerie, traces

pytestmark = [pytest.mark.lab, pytest.mark.timeout(3600)]


def test_lab_down_leaves_nothing(before: dict[str, set[str]], lab: Run) -> None:
    down = menagerie("destroy", "lab", "--yes")
    assert down.code == 0, down.err
    beside.wait()  # what others make meanwhile is no trace of a lab
    assert {kind: found - before[kind] for kind, found in traces().items()} == {kind: set() for kind in before}
    assert not (ROOT / ".menagerie" / "lab").exists()


def test_status_of_a_cluster_that_is_gone_says_what_to_run(lab: Run) -> None:
    status = menagerie("status", "lab")
    assert status.code == 1
    assert "menagerie up lab" in status.err
