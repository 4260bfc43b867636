"""Check mode: drift is reported and not corrected."""

from __future__ import annotations

import pytest

from sandbox.lab.hosts import run as on_host
from tests.lab.support import Run, menagerie

pytestmark = [pytest.mark.lab, pytest.mark.timeout(1200)]

_DRIFTED = "/etc/sysctl.d/90-menagerie-neighbours.conf"


_TASK = "Size neighbour tables for the cluster, now and at boot, and check them for overflows"


def _drift(host: str) -> None:
    on_host(host, ["sh", "-c", f"echo '# by hand' >> {_DRIFTED}"])


def _text(host: str) -> str:
    return on_host(host, ["cat", _DRIFTED]).stdout


def _changes(run: Run) -> dict[str, list[str]]:
    """Return worker -> what was changed, or would be; assert that nothing else in the cluster was."""
    assert run.code == 0, run.err
    assert set(run.json["stack"]["changes"]) == {"same"}
    changes = {name: host["changes"] for name, host in run.json["workers"]["hosts"].items()}
    assert run.json["changed"] == sum(map(len, changes.values()))
    return changes


def test_only_the_selected_role_of_the_selected_worker_runs(lab: Run) -> None:
    _drift("worker-1")
    _drift("worker-2")
    limited = menagerie("up", "lab", "--limit", "worker-1", "--tags", "neighbours", "--json")
    assert _changes(limited) == {"worker-1": [_TASK]}
    assert "by hand" not in _text("worker-1")
    assert "by hand" in _text("worker-2")


def test_a_preview_reports_only_drift_and_leaves_it(lab: Run) -> None:
    preview = menagerie("up", "lab", "--dry-run", "--json")
    assert _changes(preview) == {"worker-1": [], "worker-2": [_TASK], "worker-3": []}
    assert "by hand" in _text("worker-2")


def test_the_next_up_corrects_it_on_that_host_only(lab: Run) -> None:
    repaired = menagerie("up", "lab", "--json")
    assert _changes(repaired) == {"worker-1": [], "worker-2": [_TASK], "worker-3": []}
    assert "by hand" not in _text("worker-2")


def test_a_selection_that_matches_nothing_is_refused_with_the_nearest_name(lab: Run) -> None:
    refused = menagerie("up", "lab", "--limit", "worker-11", "--yes")
    assert refused.code == 2
    assert "INV-006" in refused.err
    assert "worker-1" in refused.err
