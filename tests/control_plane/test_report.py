"""host-report: what it writes, when a report is outdated, and what its rights in the API allow, on a real API server."""

from __future__ import annotations

import http
import json
import os
from pathlib import Path
from typing import Any

import pytest

from cluster.audit.evidence import Kind, Report
from components.control_plane import reports
from components.control_plane.host import report
from components.control_plane.host.api import Api, ApiError
from components.control_plane.objects import applied
from tests.control_plane.real_api import RealApi, plain
from tests.sharing import shared
from tests.waiting import until

pytestmark = pytest.mark.xdist_group("plain_api")
NOW = 1_760_000_000.0


def document(host: str, taken: float) -> str:
    return json.dumps({"host": host, "taken": taken})


class AsReporter:
    """`components.control_plane.host.api.Api` on the real API of the test, with the rights of host-report."""

    apply = Api.apply

    def __init__(self, api: RealApi) -> None:
        self._api = api

    def call(self, method: str, path: str, body: Any = None, kind: str = "application/json") -> Any:
        status, answer = self._api.call(method, path, body, kind, as_user=reports.USER)
        if status >= http.HTTPStatus.BAD_REQUEST:
            raise ApiError(status, answer["message"])
        return answer


@pytest.fixture
def api(tmp_path_factory: pytest.TempPathFactory) -> RealApi:
    ready = shared("api", lambda: plain(tmp_path_factory.mktemp("api")))
    for thing in reports.objects():
        status, message = ready.apply(applied(thing))
        assert status in (200, 201), message
    # The authorizer reads roles from a watch, which may be later than the answer to a write.
    until(lambda: ready.call("GET", report.CONFIGMAPS, as_user=reports.USER)[0] == http.HTTPStatus.OK)
    return ready


def test_hosts_update_their_reports_and_remove_those_of_deleted_hosts(
    api: RealApi, capsys: pytest.CaptureFixture[str]
) -> None:
    mine = AsReporter(api)
    report.report(mine, document("API-1.example", NOW - 2 * report.KEPT_S), NOW - 2 * report.KEPT_S)  # type: ignore[arg-type]
    report.report(mine, document("api-2", NOW - 900), NOW)  # type: ignore[arg-type]
    assert "host-report-api-1.example: removed" in capsys.readouterr().out
    report.report(mine, document("api-2", NOW), NOW)  # type: ignore[arg-type]
    items = mine.call("GET", report.CONFIGMAPS)["items"]
    assert {each["metadata"]["name"]: report.taken(each) for each in items} == {"host-report-api-2": NOW}


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/api/v1/namespaces/kube-system/configmaps"),
        ("GET", "/api/v1/namespaces/menagerie-reports/secrets"),
        ("POST", "/api/v1/namespaces/menagerie-reports/pods"),
        ("GET", "/api/v1/nodes"),
    ],
)
def test_it_may_do_nothing_else(api: RealApi, method: str, path: str) -> None:
    with pytest.raises(ApiError) as refused:
        AsReporter(api).call(method, path, {} if method == "POST" else None)
    assert refused.value.status == http.HTTPStatus.FORBIDDEN


def test_other_objects_are_left_alone_and_an_unreadable_report_is_outdated() -> None:
    items = [
        {"metadata": {"name": "kube-root-ca.crt"}, "data": {}},
        {"metadata": {"name": "host-report-a"}, "data": {report.KEY: "{"}},
        {"metadata": {"name": "host-report-b"}, "data": {report.KEY: document("b", NOW - report.KEPT_S + 1)}},
    ]
    assert report.outdated(items, NOW) == ["host-report-a"]


def test_a_report_is_written_again_only_after_a_key_changed(tmp_path: Path) -> None:
    key = tmp_path / "kubelet-serving-ca.crt"
    key.write_text("former")
    before, waited = report.stamps(tmp_path), list[float]()

    def pause(seconds: float) -> None:
        waited.append(seconds)
        if len(waited) == 3:
            os.utime(key, ns=(1, 1))

    report.rest(report.EVERY_S, before, tmp_path, pause)
    assert waited == [report.LOOK_S] * 3
    report.rest(report.EVERY_S, before, tmp_path, pause)
    assert len(waited) == 3, "a change during a report is in the next one"


def test_the_collector_runs_as_on_a_host(config: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (placed,) = (file for file in config.files if file.path.endswith("/menagerie_evidence.py"))
    (tmp_path / "menagerie_evidence.py").write_text(placed.text)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    collected = Report.model_validate_json(report.collected())
    assert (collected.kind, bool(collected.listening)) == (Kind.API, True)
    (tmp_path / "menagerie_evidence.py").write_text("raise SystemExit('no')")
    with pytest.raises(RuntimeError, match="menagerie_evidence: no"):
        report.collected()


def test_the_unit_sees_processes_of_all_users_and_files_as_they_are(config: Any) -> None:
    units = {file.path: file.text for file in config.files if file.path.endswith(".service")}
    text = units["/etc/systemd/system/host-report.service"]
    assert "ProtectProc=default\n" in text
    assert "InaccessiblePaths" not in text
    assert [path for path in units if "ProtectProc=invisible\n" not in units[path]] == [
        "/etc/systemd/system/host-report.service"
    ]
