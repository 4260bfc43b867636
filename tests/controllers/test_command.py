"""`menagerie controllers` from the command line to a real API server. A thread makes pods Ready as kubelets would."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cluster.load import load_cluster
from controllers.manifests import NAMESPACE
from tests.cli.terminal import Menagerie, command
from tests.tenancy.hosts import STRATEGIC
from tests.tenancy.real import Server
from tests.waiting import until

pytestmark = pytest.mark.xdist_group("controllers")

IMAGE = "registry.test/menagerie@sha256:1"


@contextmanager
def kubelets(server: Server) -> Iterator[None]:
    """Make every pod of the controllers Ready during a block."""
    over = threading.Event()

    def run() -> None:
        ready = {"conditions": [{"type": "Ready", "status": "True"}], "phase": "Running"}
        pods = f"/api/v1/namespaces/{NAMESPACE}/pods"
        while not over.wait(0.2):
            for pod in server.get(pods).get("items", ()):
                server.real.call("PATCH", f"{pods}/{pod['metadata']['name']}/status", {"status": ready}, STRATEGIC)
                if "deletionTimestamp" in pod["metadata"]:
                    server.real.call("DELETE", f"{pods}/{pod['metadata']['name']}", {"gracePeriodSeconds": 0})

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@pytest.fixture
def menagerie(
    bare: Server, spec: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Menagerie]:
    monkeypatch.setattr("operations.stack.access_to", lambda *_: bare)
    for module in ("cli.verbs.controllers", "cli.verbs.status"):
        monkeypatch.setattr(f"{module}.checked", lambda name: load_cluster(Path(name)))
    call: Callable[..., object] = command(monkeypatch, capsys)
    with kubelets(bare):

        def called(verb: str, *words: str, **more: object) -> object:
            line = ("status", str(spec), "controllers") if verb == "show" else ("controllers", verb, str(spec))
            return call(*line, *words, **more)

        yield called  # type: ignore[misc]


def test_apply_asks_and_waits_and_a_second_apply_changes_nothing(
    menagerie: Menagerie, bare: Server, spec: Path
) -> None:
    ran = menagerie("apply")
    assert (ran.code, "no controller runs yet; name an image with --image" in ran.err) == (2, True)
    ran = menagerie("apply", "--image", IMAGE, "--dry-run")
    assert (ran.code, "would be made" in ran.out, "+ Deployment menagerie-system/tenancy-sync" in ran.err) == (
        0,
        True,
        True,
    )
    assert bare.real.call("GET", f"/api/v1/namespaces/{NAMESPACE}")[0] == 404
    ran = menagerie("apply", "--image", IMAGE)
    assert (ran.code, f"--image {IMAGE} --yes" in ran.err) == (2, True)
    ran = menagerie("apply", "--image", IMAGE, typed="y\n")
    assert (ran.code, "changes made; all ready" in ran.out) == (0, True), ran.err
    # The controller applied last has no pod yet at the first look; the other may already be ready.
    assert re.search(r"waiting: tenancy-(sync|capacity) has \d of 2 pods", ran.err), ran.err
    ran = menagerie("apply", "--json")
    assert (ran.code, ran.json["changes"], ran.json["image"]) == (0, [], IMAGE)
    (spec.parent / "people.yaml").write_text("people: {ana: {}}\nteams: {}\n")
    ran = menagerie("apply", "--yes")
    assert ran.code == 0, ran.err
    assert "~ ConfigMap menagerie-system/spec: data.people.yaml" in ran.err
    ran = menagerie("show")
    # Nobody acts: no container runs.
    assert (ran.code, "tenancy-sync  namespaces of people and teams  2 of 2 ready; no leader" in ran.out) == (1, True)
    ran = menagerie("remove", "--only", "tenancy-capacity", "--yes")
    assert ran.code == 0
    assert [each["controller"] for each in json.loads(menagerie("show", "--json").out)["controllers"]] == [
        "tenancy-sync"
    ]
    ran = menagerie("remove", typed="y\n")
    assert (ran.code, "objects deleted" in ran.out) == (0, True), ran.err
    until(lambda: bare.real.call("GET", f"/api/v1/namespaces/{NAMESPACE}")[0] == 404)
    ran = menagerie("remove", "--yes")
    assert (ran.code, "no controllers; nothing to delete" in ran.out) == (0, True)


def test_an_unknown_controller_and_files_outside_the_folder_are_reported(menagerie: Menagerie, spec: Path) -> None:
    ran = menagerie("apply", "--image", IMAGE, "--only", "tenancy-sink")
    assert (ran.code, "did you mean tenancy-sync" in ran.err) == (2, True)
    text = spec.read_text()
    spec.write_text(text.replace("people.yaml", "../people.yaml"))
    ran = menagerie("apply", "--image", IMAGE, "--json")
    assert (ran.code, json.loads(ran.out)["error"]["code"]) == (2, "not-carried")
