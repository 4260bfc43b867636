"""The verbs that repair etcds, with real etcds, TLS, and an agent for each member."""

from __future__ import annotations

import dataclasses
import json
import shutil
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import pytest

from clients.agent_client import AgentClient, AgentError, NoAgentError
from operations.etcds import leader, replace, restore, space
from operations.etcds.look import EtcdView, findings
from operations.etcds.snapshots import EtcdRefusedError, EtcdSnapshot
from operations.record.journal import Journal, Unrecorded
from tests.control_plane.real_api import RealApi, running
from tests.etcd.real import NEEDS_ETCD, authority, pems, until
from tests.operations.etcds_support import CutOperation, Site, cut_everywhere, quiet, silent, site
from tests.programs import PROGRAMS, program

pytestmark = NEEDS_ETCD


def now() -> datetime:
    return datetime.now(UTC)


@pytest.fixture(scope="module")
def _site(build: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with site(build, tmp_path_factory.mktemp("etcds")) as made:
        yield made


@pytest.fixture
def here(_site: Site) -> Site:
    _site.make_whole()
    return _site


def run_restore(
    here: Site, snapshot: EtcdSnapshot | None, operation: Journal, role: Any = "main", **how: Any
) -> EtcdView:
    known = () if snapshot is None else (snapshot,)
    made = restore.plan(here.view(role), snapshot, known, operation, now(), **how)
    restore.bring_beside(made, operation, quiet, silent)
    return restore.change_over(made, operation, quiet, silent)


def folders(here: Site, role: str = "main") -> list[list[str]]:
    """Return what each member keeps next to its data."""
    return [sorted(path.name for path in here.data(role, n).glob(".menagerie/*")) for n in (1, 2, 3)]


def processes(here: Site) -> dict[str, int]:
    return {name: process.pid for name, process in here.fleet.running.items()}


def test_a_restore_recovers_the_data_on_every_member_and_keeps_their_old_data(here: Site) -> None:
    here.put("main", "/kept", "then")
    snapshot = here.snapshot("main", "first")
    here.put("main", "/kept", "now")
    last = here.put("main", "/lost")
    operation = Unrecorded()
    view = run_restore(here, snapshot, operation)
    for number in (1, 2, 3):
        assert here.ctl("main", "get", "/", "--prefix", only=number).stdout.splitlines()[:2] == ["/kept", "then"]
        assert "/lost" not in here.ctl("main", "get", "/", "--prefix", only=number).stdout
    assert {status.cluster_id for _, status in view.answering} != {snapshot.cluster_id}
    assert view.revision >= last + restore.BUMP
    token = operation.facts["token"]
    assert all((here.data("main", n) / f".menagerie/before-{token}/wal").is_dir() for n in (1, 2, 3))
    assert all(here.data("main", n).stat().st_mode & 0o777 == 0o700 for n in (1, 2, 3))
    here.etcd().agents["etcd-main-1"].act("forget", token=token)
    assert folders(here)[0] == []


def test_a_connected_watcher_sees_no_past_revision(here: Site) -> None:
    here.put("main", "/w", "0")
    snapshot = here.snapshot("main", "watched")
    url = here.fleet.folder / "watched.log"
    program, folder = str(PROGRAMS["etcdctl"]), here.fleet.folder
    address = here.etcd().members[0].client_url
    flags = [
        f"--cacert={folder}/main-ca.crt",
        f"--cert={folder}/client-of-main.crt",
        f"--key={folder}/client-of-main.key",
    ]
    with url.open("wb") as log:
        words = [program, f"--endpoints={address}", *flags, "watch", "/w", "-w", "json"]
        watcher = subprocess.Popen(words, stdout=log, stderr=log)
    try:
        time.sleep(1)
        written = [here.put("main", "/w", str(number)) for number in range(5)]
        until(
            lambda: url.read_text().count('"ModRevision"') + url.read_text().count('"mod_revision"') >= 5,
            url.read_text(),
        )
        run_restore(here, snapshot, Unrecorded())
        after = here.put("main", "/w", "after")
        assert after > max(written) + restore.BUMP - 10
        # A watch from an old revision gets "compacted"; an informer then lists again.
        until(
            lambda: watcher.poll() is not None or "compact" in url.read_text() or str(after) in url.read_text(), "told"
        )
        answers = [json.loads(line) for line in url.read_text().splitlines() if line.startswith("{")]
        revisions = [event["kv"]["mod_revision"] for each in answers for event in each.get("Events") or []]
        assert revisions == sorted(revisions)
        old = here.ctl("main", "get", "/w", f"--rev={max(written)}")
        assert "required revision has been compacted" in old.stderr
    finally:
        watcher.kill()
        watcher.wait()


def test_a_restore_that_is_interrupted_anywhere_resumes_when_it_is_run_again(here: Site) -> None:
    here.put("main", "/cut", "then")
    snapshot = here.snapshot("main", "cut")
    here.put("main", "/cut", "now")

    def run(operation: CutOperation) -> EtcdView:
        if not operation.cuts or operation.cuts[-1] == "after fetch":
            assert here.ctl("main", "get", "/cut", "--print-value-only").stdout == "now\n"
        return run_restore(here, snapshot, operation)

    view, cuts = cut_everywhere(run)
    assert cuts == [
        f"{when} {step}" for step in ("begun", "fetch", "swapping", "start") for when in ("before", "after")
    ]
    assert here.ctl("main", "get", "/cut", "--print-value-only").stdout == "then\n"
    assert len({status.cluster_id for _, status in view.answering}) == 1


def test_an_operators_snapshot_file_is_sent_in_pieces_and_resumes_after_an_interruption(
    here: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    here.put("main", "/file", "then")
    for number in range(12):
        here.put("main", f"/long/{number}", str(number) * 20_000)
    made = here.snapshot("main", "theirs")
    own = dataclasses.replace(made, path=(here.repository / "theirs").rename(here.fleet.folder / "theirs.db"))
    here.put("main", "/file", "now")
    monkeypatch.setattr(restore, "PIECE_BYTES", 64 * 1024)
    sent, act = Counter[str](), AgentClient.act

    def counted(agent: AgentClient, action: str, *words: Any, **body: Any) -> dict[str, Any]:
        sent[call := f"{agent.member} {action}"] += 1
        if (call, sent[call]) == ("etcd-main-2 take", 3):
            raise AgentError("cut off")
        return act(agent, action, *words, **body)

    monkeypatch.setattr(AgentClient, "act", counted)
    operation = Unrecorded()
    with pytest.raises(AgentError, match="cut off"):
        run_restore(here, own, operation)
    part = here.data("main", 2) / ".menagerie" / operation.facts["token"] / "snapshot.part"
    assert part.stat().st_size == 2 * 64 * 1024
    run_restore(here, own, operation)
    pieces = -(-own.size // (64 * 1024))
    # The third piece was never sent. The first one is sent again, to learn how much has arrived.
    assert sent["etcd-main-2 take"] == 1 + pieces + 1
    assert here.ctl("main", "get", "/file", "--print-value-only").stdout == "then\n"


@pytest.mark.timeout(240)
def test_an_api_server_that_keeps_running_during_a_restore_serves_the_restored_data(here: Site, tmp_path: Path) -> None:
    folder = here.fleet.folder
    flags = [
        f"--etcd-servers={','.join(each.client_url for each in here.etcd().members)}",
        f"--etcd-cafile={folder}/main-ca.crt",
        f"--etcd-certfile={folder}/client-of-main.crt",
        f"--etcd-keyfile={folder}/client-of-main.key",
    ]
    maps = "/api/v1/namespaces/default/configmaps"

    def put(api: RealApi, name: str, text: str) -> int:
        item = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"text": text}}
        return api.apply({"path": f"{maps}/{name}", "force": True, "object": item})[0]

    def listed(api: RealApi, query: str) -> dict[str, str]:
        status, answer = api.call("GET", f"{maps}{query}")
        items = answer["items"] if status == 200 else ()
        return {each["metadata"]["name"]: each["data"].get("text", "") for each in items}

    with running(program, tmp_path, etcd_flags=flags) as api:
        assert put(api, "kept", "then") in (200, 201)
        snapshot = here.snapshot("main", "api")
        assert put(api, "kept", "now") == 200
        assert put(api, "lost", "x") == 201
        # The API server's cache follows its etcd with a watch, so it may lag for a moment.
        until(lambda: listed(api, "?resourceVersion=0").get("lost") == "x", "in the API server's memory", 60)
        run_restore(here, snapshot, Unrecorded())
        # From the etcd, and from the API server's cache, which was not cleared by a restart.
        for query in ("", "?resourceVersion=0"):
            until(lambda query=query: listed(api, query).get("kept") == "then", f"restored: {query}", 120)
            assert "lost" not in listed(api, query)
        assert put(api, "kept", "after") == 200
        until(lambda: listed(api, "?resourceVersion=0")["kept"] == "after", "the watch goes on", 60)


def test_another_snapshot_starts_from_scratch_until_members_are_stopped_and_is_refused_afterwards(here: Site) -> None:
    one, other = here.snapshot("main", "one"), here.snapshot("main", "other")
    operation = Unrecorded()
    for snapshot in (one, other):
        made = restore.plan(here.view(), snapshot, (one, other), operation, now())
        restore.bring_beside(made, operation, quiet, silent)
        assert folders(here) == [[operation.facts["token"]]] * 3
    operation.done("swapping")
    with pytest.raises(EtcdRefusedError, match="a restore of etcd main from other was interrupted.*--snapshot other"):
        restore.plan(here.view(), one, (one, other), operation, now())


def test_the_alarm_of_a_removed_corrupt_member_is_cleared() -> None:
    class Client:
        def __init__(self, *alarms: str) -> None:
            self.raised = alarms

        def alarms(self) -> tuple[str, ...]:
            return self.raised

        def disarm(self) -> None:
            self.raised = ()

    for client, left in ((Client("CORRUPT"), ()), (Client("NOSPACE"), ("NOSPACE",))):
        replace.take_back_corrupt(SimpleNamespace(client=client))  # type: ignore[arg-type]
        assert client.raised == left


def test_after_a_failed_stop_the_etcd_keeps_running_with_its_old_data(here: Site) -> None:
    snapshot = here.snapshot("main", "unstoppable")
    here.put("main", "/still", "here")
    units = here.units["etcd-main-2"]
    units.broken = True
    try:
        with pytest.raises(AgentError, match="etcd-main-2: OSError: no systemd"):
            run_restore(here, snapshot, Unrecorded())
    finally:
        units.broken = False
    until(lambda: not any(here.etcd().client.ailments().values()), "healthy again")
    assert here.ctl("main", "get", "/still", "--print-value-only").stdout == "here\n"


@pytest.mark.parametrize(("damage", "message"), [("flip", "hash mismatch|damaged"), ("cut", "truncated")])
def test_a_bad_snapshot_is_refused_before_anything_is_changed(here: Site, damage: str, message: str) -> None:
    older = dataclasses.replace(here.snapshot("main", "good"), time=now() - timedelta(minutes=34))
    bad = here.snapshot("main", "bad")
    path = here.repository / "bad"
    content = bytearray(path.read_bytes())
    if damage == "flip":
        content[len(content) // 2] ^= 1
    path.write_bytes(content if damage == "flip" else content[: len(content) // 2])
    pids, operation = processes(here), Unrecorded()
    made = restore.plan(here.view(), bad, (older, bad), operation, now())
    with pytest.raises(
        EtcdRefusedError, match=rf"snapshot bad: .*({message}).*Newest good one: good, 34 minutes older"
    ):
        restore.bring_beside(made, operation, quiet, silent)
    assert processes(here) == pids
    assert all(
        not (here.data("main", n) / ".menagerie" / operation.facts["token"] / "data").exists() for n in (1, 2, 3)
    )


def test_foreign_and_stale_snapshots_are_refused(here: Site) -> None:
    good = here.snapshot("main", "mine")
    view = here.view()
    foreign = [
        (dataclasses.replace(good, cluster="ibis"), "is from etcd main of ibis, not from etcd main of lab"),
        (dataclasses.replace(good, etcd="events"), "is from etcd events of lab"),
        (dataclasses.replace(good, cluster_id="abc"), "cluster ID abc; this etcd has had"),
        (dataclasses.replace(good, time=now() - timedelta(hours=30)), "30 hours old.*--accept-stale"),
    ]
    for snapshot, message in foreign:
        with pytest.raises(EtcdRefusedError, match=message):
            restore.plan(view, snapshot, (), Unrecorded(), now())
    old = restore.plan(view, foreign[3][0], (), Unrecorded(), now(), accept_stale=True)
    assert old.warnings == ()
    unverified = restore.plan(view, dataclasses.replace(good, verified_at=None), (), Unrecorded(), now())
    assert unverified.warnings == ("snapshot mine was never tested by a drill",)
    assert folders(here) == [[], [], []]


def test_a_restore_without_enough_disk_space_is_refused(here: Site) -> None:
    big = dataclasses.replace(here.snapshot("main", "big"), size=10**15)
    with pytest.raises(EtcdRefusedError, match=r"etcd-main-1: .* free in .*, a restore needs about 2000000.* GB"):
        restore.plan(here.view(), big, (), Unrecorded(), now())
    with pytest.raises(AgentError, match=r"MB free in .*, a restore of this snapshot needs about 20000002.. MB"):
        here.etcd().agents["etcd-main-1"].act("fetch", token="room", snapshot="big", size=10**15)


def test_events_are_restored_to_empty_from_the_same_bytes_on_all_members(here: Site) -> None:
    last = here.put("events", "/registry/events/a")
    view = run_restore(here, None, Unrecorded(), "events")
    # API servers that know the key would exit if they did not find it at the next compaction.
    assert here.keys("events", "") == ["compact_rev_key"]
    assert view.revision >= last + restore.BUMP
    assert here.put("events", "/registry/events/b") > view.revision


def test_a_restore_recovers_an_etcd_that_has_lost_quorum(here: Site) -> None:
    here.put("main", "/quorum", "then")
    snapshot = here.snapshot("main", "quorum")
    for number in (2, 3):
        here.fleet.kill(f"etcd-main-{number}")
        shutil.rmtree(here.data("main", number) / "member")
    until(lambda: not here.view().has_quorum, "quorum lost")
    run_restore(here, snapshot, Unrecorded())
    assert here.ctl("main", "get", "/quorum", "--print-value-only").stdout == "then\n"


def test_without_a_quorum_membership_is_not_changed_and_the_way_out_is_shown(here: Site) -> None:
    before = here.etcd().client.listed()
    for number in (2, 3):
        here.fleet.kill(f"etcd-main-{number}")
    until(lambda: not here.view().has_quorum, "quorum lost")
    view = here.view()
    text = r"etcd main has lost quorum \(1 of 3 members\). Membership can't be changed. .* ./menagerie etcd restore lab main"
    with pytest.raises(EtcdRefusedError, match=text):
        replace.refuse(view, "etcd-main-2", although_healthy=True)
    assert "has lost quorum" in findings(view)[0]
    here.make_whole()
    assert here.etcd().client.listed() == before


def test_a_member_with_an_empty_disk_is_replaced_under_load_and_no_acknowledged_write_is_lost(here: Site) -> None:
    acknowledged: list[str] = []
    over = threading.Event()

    def write() -> None:
        number = 0
        while not over.is_set():
            number += 1
            if here.ctl("main", "put", f"/load/{number:05}", "x").returncode == 0:
                acknowledged.append(f"/load/{number:05}")

    here.fleet.kill("etcd-main-2")
    shutil.rmtree(here.data("main", 2) / "member")
    (down,) = [line for line in findings(here.view()) if "is down" in line]
    assert "2 of 3 members healthy" in down
    assert down.endswith("Replace it: ./menagerie etcd replace lab main etcd-main-2")
    writer = threading.Thread(target=write)
    writer.start()
    try:
        view = here.view()
        replace.refuse(view, "etcd-main-2", although_healthy=False)
        after = replace.replace(view, "etcd-main-2", Unrecorded(), quiet, silent)
    finally:
        over.set()
        writer.join()
    assert all(each.healthy for each in after.members)
    assert len(acknowledged) > 3
    for number in (1, 2, 3):
        keys = here.ctl("main", "get", "/load/", "--prefix", "--keys-only", only=number).stdout.split()
        assert set(acknowledged) <= set(keys)
    assert not any(each.learner for each in here.etcd().client.listed())


def test_a_replacement_that_is_interrupted_anywhere_resumes_when_it_is_run_again(here: Site) -> None:
    here.fleet.kill("etcd-main-3")
    shutil.rmtree(here.data("main", 3) / "member")
    after, cuts = cut_everywhere(
        lambda operation: replace.replace(here.view(), "etcd-main-3", operation, quiet, silent)
    )
    assert cuts == [f"{when} {step}" for step in ("begun", "remove", "join") for when in ("before", "after")]
    assert all(each.healthy for each in after.members)
    assert [each.name for each in here.etcd().client.listed() if each.learner] == []


def test_a_removed_member_that_comes_back_is_reported_and_replaced(here: Site) -> None:
    here.remove("etcd-main-3")
    until(lambda: here.fleet.running["etcd-main-3"].poll() is not None, "the removed member has ended")
    replace.replace(here.view(), "etcd-main-3", operation := Unrecorded(), quiet, silent)
    assert (here.data("main", 3) / f".menagerie/before-{operation.facts['token']}/wal").is_dir()
    assert not any(here.etcd().client.ailments().values())


def test_a_member_is_not_asked_to_remove_itself(here: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    client = here.etcd().client
    gone, *others = sorted(client.listed(), key=lambda each: each.name, reverse=True)
    run: list[list[str]] = []

    def remember(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        run.append(command)
        return subprocess.CompletedProcess(command, 0, "", "")

    # Only in this module: hosts of other tests run programs from this process, too.
    monkeypatch.setattr("clients.etcd_client.subprocess", SimpleNamespace(**{**vars(subprocess), "run": remember}))
    client.remove(gone)
    (endpoints,) = [word.removeprefix("--endpoints=") for word in run[0] if word.startswith("--endpoints=")]
    asked = {urlsplit(url).hostname for url in endpoints.split(",")}
    assert asked == {urlsplit(url).hostname for each in others for url in each.peer_urls}


def test_a_healthy_member_is_not_replaced_and_none_is_while_another_is_unhealthy(here: Site) -> None:
    with pytest.raises(EtcdRefusedError, match="etcd-main-1 is healthy.*--although-healthy"):
        replace.refuse(here.view(), "etcd-main-1", although_healthy=False)
    replace.refuse(here.view(), "etcd-main-1", although_healthy=True)
    here.fleet.kill("etcd-main-3")
    with pytest.raises(EtcdRefusedError, match="another member is unhealthy .etcd-main-3"):
        replace.refuse(here.view(), "etcd-main-1", although_healthy=True)


def fill(here: Site) -> None:
    """Write until the quota is reached. Values are passed on standard input: they are too long for a command line."""
    for number in range(40):
        done = here.fleet.etcdctl("events", "client-of-events", "put", f"/big/{number % 4}", text="x" * 10**6)
        if done.returncode:
            assert "database space exceeded" in done.stderr
            return
    raise AssertionError("the quota is not in force")


def test_an_etcd_at_its_quota_accepts_writes_again_even_if_the_recovery_is_interrupted_anywhere(here: Site) -> None:
    fill(here)
    view = here.view("events")
    (finding,) = [line for line in findings(view) if "NOSPACE" in line]
    assert finding.endswith("Reads and deletes only. Run: ./menagerie etcd recover-space lab events")
    space.refuse(view)
    after, cuts = cut_everywhere(lambda operation: space.recover(here.view("events"), operation, quiet, silent))
    assert len(cuts) == 8
    assert after.alarms == here.etcd("events").client.alarms() == ()
    here.put("events", "/big/again")
    here.ctl("events", "del", "/big", "--prefix")


def test_defragmenting_goes_from_followers_to_the_leader_and_refuses_a_full_disk(here: Site) -> None:
    view = here.view()
    assert view.leader
    operation = Unrecorded()
    space.defragment(view, [each.name for each in view.members], operation, quiet, silent)
    assert operation.steps[-1] == f"defragment {view.leader.name}"
    full = dataclasses.replace(
        view, members=tuple(dataclasses.replace(each, agent=each.agent | {"disk_free": 12}) for each in view.members)
    )
    with pytest.raises(
        EtcdRefusedError, match=r"etcd-main-1: 0.0 MB free in .*, defrag needs about .* Nothing was changed"
    ):
        space.refuse(full)


def test_leadership_moves_to_the_requested_member(here: Site) -> None:
    view = here.view()
    assert view.leader
    to = next(each.name for each in view.members if each is not view.leader)
    assert f"would move from {view.leader.name} to {to}" in leader.move(view, to, only_look=True)
    assert f"leadership moved from {view.leader.name} to {to} (term " in leader.move(view, to)
    after = here.view()
    assert after.leader and after.leader.name == to
    assert leader.move(after, to) == f"etcd main: {to} is the leader already."


def test_an_agent_reports_the_state_of_its_members(here: Site) -> None:
    state = here.etcd("events").agents["etcd-events-2"].state()
    assert (state["active"], state["held"], state["kept_aside"], state["quota"]) == (True, "", {}, 16 * 2**20)
    assert state["version"].startswith("3.")
    assert 0 < state["fsync_p99_s"] < 10
    assert state["data_bytes"] > 0 and state["disk_free"] > 0
    assert abs(state["clock"] - time.time()) < 60
    until_ = {Path(path).name: when for path, when in state["certificates"].items()}
    assert {"server.crt", "peer.crt", "ca.crt", "agent-ca.crt"} <= until_.keys()
    assert all(time.time() < when < time.time() + 3700 for when in until_.values())


def strangers(here: Site) -> Iterator[tuple[str, str, str]]:
    """(who, certificate, key)"""
    yield "another name", *pems("somebody", here.fleet.authorities["main"], ("client",))
    yield "of the CA of events", *pems("menagerie-operator", here.fleet.authorities["events"], ("client",))
    yield "of no CA of ours", *pems("menagerie-operator", authority("main"), ("client",))


def test_a_client_without_the_operators_certificate_is_refused(here: Site) -> None:
    etcd = here.etcd()
    port = etcd.agents["etcd-main-1"]._pool.port
    for who, certificate, key in strangers(here):
        access = dataclasses.replace(here.access, etcd_certificate=certificate, etcd_key=key)
        agent = AgentClient(access, "main", "etcd-main-1", port or 0)  # type: ignore[arg-type]
        expected: type[Exception] = AgentError if who == "another name" else NoAgentError
        with pytest.raises(expected) as refused:
            agent.state()
        assert ("somebody may not ask this agent" in str(refused.value)) == (who == "another name"), who


def test_an_agent_refuses_unknown_requests(here: Site) -> None:
    agent = here.etcd().agents["etcd-main-1"]
    for action, body, message in [
        ("fetch", {"snapshot": "x", "size": 1}, "the request has no 'token'"),
        ("stop", {"token": "../../etc"}, "token '../../etc' is not made of"),
        ("swap", {"token": "never"}, "etcd-main.service is running; stop it first"),
        (
            "prepare",
            {"token": "never", "initial_cluster": "", "initial_cluster_token": "", "bump_revision": 0},
            "fetch first",
        ),
        ("__init__", {}, "there is no action __init__"),
        ("take", {"token": "piece", "size": 1, "offset": 0, "piece": "%"}, "the piece is not base64"),
        ("fetch", {"token": "piece", "size": 1}, "0 of 1 bytes were received; send the others first"),
    ]:
        with pytest.raises(AgentError, match=message.replace("(", r"\(")):
            agent.act(action, **body)
    answer = agent._pool.urlopen("POST", "/v1/etcd/main/start", headers={"Content-Length": str(5 * 2**20)})
    assert (answer.status, answer.json()["error"]) == (413, "the body has 5242880 bytes; the limit is 4194304")
