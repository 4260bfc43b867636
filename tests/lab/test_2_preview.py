"""Check mode: drift is reported and not mended."""

from __future__ import annotations

import pytest

from lab.hosts import run as on_host
from tests.lab.support import Run, menagerie

pytestmark = [pytest.mark.lab, pytest.mark.timeout(1200)]

_DRIFTED = "/etc/sysctl.d/90-menagerie-neighbours.conf"


def _text() -> str:
    return on_host("worker-1", ["cat", _DRIFTED]).stdout


def test_a_preview_reports_drift_and_leaves_it(lab: Run) -> None:
    good = _text()
    on_host("worker-1", ["sh", "-c", f"echo '# by hand' >> {_DRIFTED}"])
    drifted = _text()
    preview = menagerie("preview", "lab", "--json")
    assert preview.code == 0, preview.err
    assert preview.json["workers"]["hosts"]["worker-1"]["changed"] > 0
    assert preview.json["workers"]["hosts"]["worker-2"]["changed"] == 0
    assert _text() == drifted != good


def test_the_next_up_mends_it_on_that_host_alone(lab: Run) -> None:
    repaired = menagerie("up", "lab", "--json")
    assert repaired.code == 0, repaired.err
    changed = {name: host["changed"] > 0 for name, host in repaired.json["workers"]["hosts"].items()}
    assert changed == {"worker-1": True, "worker-2": False, "worker-3": False}
    assert "by hand" not in _text()


def test_a_selected_role_of_a_selected_worker_is_all_that_is_touched(lab: Run) -> None:
    for host in ("worker-1", "worker-2"):
        on_host(host, ["sh", "-c", f"echo '# by hand' >> {_DRIFTED}"])
    one = menagerie("up", "lab", "--limit", "worker-1", "--tags", "neighbours", "--json")
    assert one.code == 0, one.err
    assert {name: host["changes"] for name, host in one.json["workers"]["hosts"].items()} == {
        "worker-1": ["Neighbour tables fit the cluster, now and at boot, and are looked at for overflows"]
    }
    assert "by hand" in on_host("worker-2", ["cat", _DRIFTED]).stdout
    assert menagerie("up", "lab", "--limit", "worker-2", "--yes").code == 0
    assert "by hand" not in on_host("worker-2", ["cat", _DRIFTED]).stdout


def test_a_selection_that_matches_nothing_is_refused_with_the_nearest_name(lab: Run) -> None:
    refused = menagerie("up", "lab", "--limit", "worker-11", "--yes")
    assert refused.code == 2
    assert "INV-006" in refused.err
    assert "worker-1" in refused.err
