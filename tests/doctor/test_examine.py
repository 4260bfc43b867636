"""The whole of `doctor`: what is asked without a login, what a login that fails stops, and the command itself."""

from __future__ import annotations

import http.server
import json
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import urllib3

from clients.clouds import CallError
from cluster.load import load_cluster
from components.image_needs import of_cluster
from network.addresses import plan
from operations.doctor import local
from operations.doctor.examine import examine
from operations.doctor.images import manifest_question, read_image
from operations.doctor.model import Answer, Once, Question, Report, State, ok, wrong
from operations.doctor.quotas import Need, Quota, compared
from operations.doctor.run import ask
from tests.doctor.fake_azure import Subscription
from tests.doctor.fake_google import Project
from tests.doctor.support import ROOT, example
from tests.scheduling.clouds.door import Door, Response, Upstream


@pytest.fixture
def served(opened: Callable[[Upstream], Door], monkeypatch: pytest.MonkeyPatch) -> Door:
    """Let every download be there. urllib3 takes no proxy from the environment, so the request is answered here."""
    door = opened(lambda _: Response(200, ""))
    monkeypatch.setattr(local, "_host", lambda http, host, urls: ok(f"serves all {len(urls)} files", about=host))
    return door


PARTS = ("packages", "programs", "kernel")
"""Of a manifest."""


def states(report: Report, group: str) -> dict[str, State]:
    return {row.name: row.answer.state for row in report.rows if row.group == group}


def test_without_credentials_the_way_to_log_in_is_shown_and_what_needs_none_is_asked(home: Path, served: Door) -> None:
    report = examine(example("azure-small"), lambda _: None)
    first = report.rows[0]
    assert (first.name, first.answer.state, first.answer.mend) == ("credentials", State.WRONG, ("az login",))
    here = states(report, "here")
    assert {"programs", "state", "passphrase", "checksums", "plugin", "downloads: dl.k8s.io"} <= set(here)
    assert State.NOT_ASKED not in here.values()
    others = [row for row in report.rows if row.group != "here"]
    assert {row.answer.state for row in others} == {State.NOT_ASKED}
    assert len(others) == 10
    assert not report.ok
    assert served.log == []


def test_a_login_that_the_cloud_does_not_accept_is_wrong_and_stops_only_its_questions(
    home: Path, served: Door, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GOOGLE_OAUTH_ACCESS_TOKEN", "expired")
    monkeypatch.setenv("GOOGLE_PROJECT", "a-project")
    served.upstream = project.answer
    report = examine(example("gcp-small"), lambda _: None)
    identity = next(row for row in report.rows if row.name == "identity")
    assert (identity.answer.state, identity.answer.mend) == (
        State.WRONG,
        ("gcloud auth application-default login", "export GOOGLE_PROJECT=<project>"),
    )
    assert set(states(report, "quotas").values()) == {State.NOT_ASKED}
    assert states(report, "here")["downloads: dl.k8s.io"] is State.OK
    assert len(served.log) == 1


def test_a_whole_examination_is_ok_only_if_everything_is(
    home: Path, azure_door: Door, subscription: Subscription, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("operations.doctor.examine.local_questions", lambda _: [])
    messages: list[str] = []
    report = examine(example("azure-small"), messages.append)
    assert report.ok
    assert report.count(State.OK) == len(report.rows)
    assert any("waiting for" in text for text in messages)
    subscription.compute = []
    assert not examine(example("azure-small"), messages.append).ok


def test_without_the_clouds_library_the_way_to_install_it_is_shown(
    home: Path, served: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    def absent(*_: object) -> list[Question]:
        raise ModuleNotFoundError("no module", name="boto3")

    monkeypatch.setattr("operations.doctor.examine.cloud_questions", absent)
    report = examine(example("aws-small"), lambda _: None)
    row = next(row for row in report.rows if row.name == "libraries")
    assert (row.answer.state, row.answer.mend) == (State.WRONG, ("uv tool install '.[aws]'",))


def test_a_lab_has_no_account_and_is_asked_about_its_machine(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "_lab", lambda _: iter([ok("it fits")]))
    report = examine(load_cluster(ROOT / "inventories/lab/cluster.yaml"), lambda _: None)
    assert {row.group for row in report.rows} == {"here"}
    assert {row.name for row in report.rows} == {"programs", "state", "passphrase", "machine"}


def test_a_mirror_that_lacks_a_file_is_wrong_and_one_that_does_not_answer_unknown() -> None:
    class Mirror(http.server.BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self.send_response(404 if "absent" in self.path else 200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Mirror) as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        base = f"http://127.0.0.1:{server.server_port}"
        with urllib3.PoolManager(retries=False) as client:
            whole = local._host(client, "mirror", [f"{base}/a", f"{base}/b"])
            part = local._host(client, "mirror", [f"{base}/a", f"{base}/absent"])
            server.shutdown()
            server.server_close()
            silent = local._host(client, "mirror", [f"{base}/a"])
    assert (whole.state, whole.finding) == (State.OK, "serves all 2 files to this machine")
    assert (part.state, part.finding) == (State.WRONG, "1 of 2 files are refused: absent (404)")
    assert part.mend == (f"curl -fsSI {base}/absent",)
    assert silent.state is State.UNKNOWN


def test_a_public_name_that_resolves_already_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    def resolved(name: str, port: object) -> list[tuple[object, ...]]:
        if name == "free.example":
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        if name == "silent.example":
            raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")
        return [(0, 0, 0, "", ("192.0.2.7", 0))]

    monkeypatch.setattr(socket, "getaddrinfo", resolved)
    answer_of = lambda name: next(iter(local._public_name(name)))
    assert answer_of("free.example").state is State.OK
    assert (answer_of("taken.example").state, "192.0.2.7" in answer_of("taken.example").finding) == (
        State.UNKNOWN,
        True,
    )
    assert answer_of("silent.example").state is State.UNKNOWN


def question(name: str, answer: Callable[[], list[Answer]]) -> Question:
    return Question("group", name, answer, rights=("a:Right",))


def test_questions_are_independent_and_end_in_time() -> None:
    ended = threading.Event()

    def late() -> list[Answer]:
        ended.wait(60)
        return [ok("too late")]

    def refused() -> list[Answer]:
        raise CallError("no", refused=True)

    def broken() -> list[Answer]:
        raise ZeroDivisionError("half of nothing")

    began = time.monotonic()
    asked = [
        question("late", late),
        question("refused", refused),
        question("broken", broken),
        question("fine", lambda: [ok("yes"), wrong("no", about="part")]),
    ]
    rows = ask(asked, lambda _: None, patience_s=2)
    ended.set()
    assert time.monotonic() - began < 30
    assert [(row.name, row.answer.state, row.answer.finding) for row in rows] == [
        ("late", State.UNKNOWN, "no answer within 2 s"),
        ("refused", State.UNKNOWN, "no; it needs a:Right"),
        ("broken", State.UNKNOWN, "ZeroDivisionError: half of nothing"),
        ("fine", State.OK, "yes"),
        ("fine: part", State.WRONG, "no"),
    ]


def test_a_value_that_several_questions_need_is_requested_once_even_if_it_fails() -> None:
    calls: list[int] = []

    def make() -> int:
        calls.append(1)
        raise CallError("throttled")

    value = Once(make)
    for _ in range(3):
        with pytest.raises(CallError, match="throttled"):
            value()
    assert calls == [1]


@pytest.mark.parametrize(
    ("limit", "used", "state", "finding"),
    [
        (100, 0, State.OK, "100 left of 100 vCPUs in r"),
        (100, 36, State.OK, "64 left of 100 vCPUs in r"),
        (100, 37, State.WRONG, "63 left of 100 vCPUs in r: enough to start, too few to grow"),
        (100, 93, State.WRONG, "7 left of 100 vCPUs in r: too few to start"),
    ],
)
def test_a_quota_is_compared_with_the_least_and_the_most(limit: int, used: int, state: State, finding: str) -> None:
    answer = compared(Quota("q", "vCPUs", "r", limit, used), [Need("pool", 1, 8, 8)], lambda size: [f"ask {size}"])
    assert (answer.state, answer.finding) == (state, finding)
    assert answer.needed == "8 vCPUs at the start, 64 at most: pool 1 to 8 × 8"
    assert answer.mend == (() if state is State.OK else (f"ask {used + 64}",))


def test_an_images_manifest_is_compared_with_what_each_kind_of_host_needs(tmp_path: Path) -> None:
    cluster = example("aws-small")
    needs = {kind: each for kind, each in of_cluster(cluster, plan(cluster)).items() if kind != "edge routers"}
    assert set(needs) == {"API servers", "hosts of etcd members", "pool cpu"}
    file = tmp_path / "manifest"
    names = sorted({name for each in needs.values() for name in each.packages})
    file.write_text("".join(f"{name}\t1.0-1\n" for name in names if name != "iptables"))
    outcomes = {answer.about: answer for answer in manifest_question(cluster, file).ask()}
    assert {about: answer.state for about, answer in outcomes.items()} == {
        "API servers": State.OK,
        "hosts of etcd members": State.OK,
        "pool cpu": State.WRONG,
    }
    assert outcomes["pool cpu"].mend == ("apt-get install iptables",)
    file.write_text("<html>\n")
    assert [answer.state for answer in manifest_question(cluster, file).ask()] == [State.UNKNOWN]


def test_a_whole_manifest_also_has_programs_and_options_of_the_kernel(tmp_path: Path) -> None:
    cluster = example("aws-small")
    every = of_cluster(cluster, plan(cluster)).values()
    file = tmp_path / "manifest"
    manifest = {part: sorted({name for needs in every for name in getattr(needs, part)}) for part in PARTS}
    file.write_text(json.dumps(manifest))
    assert {answer.state for answer in manifest_question(cluster, file).ask()} == {State.OK}
    file.write_text(
        json.dumps(manifest | {"programs": [], "kernel": [name for name in manifest["kernel"] if name != "VXLAN"]})
    )
    (pool,) = (answer for answer in manifest_question(cluster, file).ask() if answer.about == "pool cpu")
    assert pool.state is State.WRONG
    assert pool.finding.endswith("kernel option CONFIG_VXLAN")
    assert "program iptables" in pool.finding


def test_a_manifest_has_names_with_and_without_architectures_and_no_removed_packages() -> None:
    image, is_whole = read_image("libc6:amd64\t2.36\npython3\t3.11\nremoved\t\n")
    assert (image.packages, is_whole) == ({"libc6", "python3"}, False)
    for broken in ("{broken", '{"packages": 3}', "removed\t\n"):
        with pytest.raises(ValueError, match="manifest"):
            read_image(broken)
