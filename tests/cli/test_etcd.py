"""`etcd ...`: arguments, questions, refusals and output, with simulated members."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cli.actions import etcd_restore
from clients.agent_client import AgentError
from clients.etcd_client import MemberStatus
from cluster.spec import Cluster, RoleName
from etcd.members import members
from network.addresses import plan
from operations import stack
from operations.etcds import look as looking
from operations.etcds.look import EtcdAccess, EtcdView, MemberState
from operations.record.journal import Unrecorded
from tests.cli.terminal import Menagerie

AGENT = {
    "data_dir": "/var/lib/etcd/main", "disk_free": 10**11, "fsync_p99_s": 0.002, "ahead_s": 0.1, "held": "",
    "kept_aside": {}, "certificates": {"/etc/etcd/main/pki/server.crt": 4e9},
}  # fmt: skip


STATUS = MemberStatus("1", "c1", "1", 70, 2, "3.6.14", 10**8, 9 * 10**7, 8 * 2**30, False, ())


class NoAgent:
    """An agent that records its requests."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, dict[str, Any]]] = []

    def state(self) -> dict[str, Any]:
        return {"kept_aside": {"before-x": 1, "restore-1": 1}, "kept_aside_s": {"before-x": 10**6, "restore-1": 60}}

    def act(self, action: str, report: Any = None, **body: Any) -> dict[str, Any]:
        self.requests.append((action, body))
        if action == "forget":
            return {"forgotten": ["before-x"]}
        raise AgentError(f"asked to {action}")


@dataclasses.dataclass
class World:
    """Simulated members. changes: fields of `MemberState` to replace, by the member's name."""

    changes: dict[str, dict[str, Any]] = dataclasses.field(default_factory=dict)
    agents: dict[str, NoAgent] = dataclasses.field(default_factory=dict)

    def reach(self, cluster: Cluster, access: object, role: RoleName) -> EtcdAccess:
        all_members = members(cluster, role, plan(cluster))
        agents = {member.name: self.agents.setdefault(member.name, NoAgent()) for member in all_members}
        return EtcdAccess(cluster, role, None, agents, all_members)  # type: ignore[arg-type]

    def look(self, etcd: EtcdAccess) -> EtcdView:
        return EtcdView(
            etcd, tuple(self._member(number, member) for number, member in enumerate(etcd.members, start=1))
        )

    def _member(self, number: int, member: Any) -> MemberState:
        status = MemberStatus(f"{number}", "c1", "1", 70 + number, 2, "3.6.14", 10**8, 9 * 10**7, 8 * 2**30, False, ())
        view = MemberState(member, status, "", dict(AGENT), "")
        return dataclasses.replace(view, **self.changes.get(member.name, {}))


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    fake = World()
    monkeypatch.setattr(stack, "access_to", lambda *_: None)
    monkeypatch.setattr(etcd_restore, "_snapshots", lambda *_, needed: ())
    monkeypatch.setattr("operations.record.one_operation", lambda *_, **__: nullcontext(Unrecorded()))
    monkeypatch.setattr(looking, "reach", fake.reach)
    monkeypatch.setattr(looking, "read_members", fake.look)
    monkeypatch.setenv("COLUMNS", "200")
    return fake


def down(error: str = "context deadline exceeded") -> dict[str, Any]:
    return {"status": None, "problem": error}


def test_the_state_of_healthy_etcds_is_a_table_without_findings(menagerie: Menagerie, world: World) -> None:
    done = menagerie("status", "lab", "etcd")
    assert done.code == 0, done.err
    assert "etcd main" in done.out and "etcd events" in done.out
    (row,) = [line.split() for line in done.out.splitlines() if line.startswith("etcd-main-1")]
    assert row[2:4] == ["healthy", "leader"]
    assert menagerie("status", "lab", "etcd", "--json").json["findings"] == []


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        (
            {"etcd-main-2": down()},
            "main: 2 of 3 members healthy; etcd-main-2 (10.77.0.22) is down. Writes still work; losing one more stops them. "
            + "Replace it: ./menagerie etcd replace lab main etcd-main-2",
        ),
        (
            {"etcd-main-2": {"problem": "context deadline exceeded"}},
            "etcd main: etcd-main-2 can't reach its peers; check TCP 2380 between 10.77.0.22 and 10.77.0.21, 10.77.0.23",
        ),
        ({f"etcd-main-{n}": down() for n in (1, 2, 3)}, "etcd main has lost quorum (0 of 3 members)"),
        (
            {"etcd-main-3": {"agent": AGENT | {"fsync_p99_s": 0.022}}},
            "etcd-main-3: fsync p99 22 ms of /var/lib/etcd/main (limit 10 ms)",
        ),
        (
            {"etcd-main-3": {"agent": AGENT | {"ahead_s": -312.0}}},
            "etcd-main-3: its clock is 312 s behind this machine's",
        ),
        ({"etcd-main-3": {"agent": AGENT | {"held": "restore-1"}}}, "etcd-main-3: stopped by restore-1"),
        ({"etcd-main-3": {"agent": AGENT | {"certificates": {"/x.crt": 0}}}}, "etcd-main-3: /x.crt expires 1970-01-01"),
        (
            {"etcd-main-3": {"agent": {}, "agent_error": "no answer"}},
            "no answer; docs/runbooks/etcd-agent-silent.md",
        ),
    ],
)
def test_a_finding_names_the_problem_and_the_way_out(
    menagerie: Menagerie, world: World, changes: dict[str, Any], text: str
) -> None:
    world.changes = changes
    done = menagerie("status", "lab", "etcd")
    assert done.code == 1
    assert text in done.err
    assert any(text in line for line in menagerie("status", "lab", "etcd", "--json").json["findings"])


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (["restore", "lab", "main", "--to-empty"], 2, "--to-empty is for events"),
        (["restore", "lab", "main"], 2, "there is no snapshot"),
        (["restore", "lab", "main", "--file", "/nowhere"], 2, "/nowhere: no such file"),
        (["restore", "lab", "events", "--to-empty"], 2, "./menagerie etcd restore lab events --yes"),
        (["replace", "lab", "main", "etcd-main-9"], 2, "its members are etcd-main-1, etcd-main-2, etcd-main-3"),
        (["replace", "lab", "main", "etcd-main-2"], 2, "etcd-main-2 is healthy"),
        (["replace", "lab", "main", "etcd-main-2", "--although-healthy"], 2, "replace lab main etcd-main-2 --yes"),
        (["recover-space", "lab", "main"], 2, "./menagerie etcd recover-space lab main --yes"),
        (["defragment", "lab", "main"], 0, "no member has 30 % free"),
        (["defragment", "lab", "main", "--force"], 2, "./menagerie etcd defragment lab main --yes"),
        (["move-leader", "lab", "main", "etcd-main-1"], 0, "etcd-main-1 is the leader already"),
        (["forget", "lab", "main"], 2, "give --token or --older-than"),
        (["forget", "lab", "main", "--older-than", "soon"], 2, "2h or 7d"),
        (["state", "nowhere"], 2, "nowhere"),
        (["restore", "lab", "leases"], 2, "leases"),
    ],
)
def test_a_refusal_touches_nothing_and_says_why(
    menagerie: Menagerie, world: World, arguments: list[str], code: int, text: str
) -> None:
    done = menagerie("etcd", *arguments)
    assert done.code == code, done.err
    assert text in done.err + done.out
    assert all(agent.requests == [] for agent in world.agents.values())


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["restore", "lab", "events", "--to-empty"], "would restore empty: every key of etcd events will be lost"),
        (["replace", "lab", "main", "etcd-main-2", "--although-healthy"], "would replace etcd-main-2"),
        (["recover-space", "lab", "main"], "would compact at 73 and defragment etcd-main-1 100.0 MB"),
        (["defragment", "lab", "main", "--force"], "would defragment etcd-main-1, etcd-main-2, etcd-main-3"),
        (["move-leader", "lab", "main", "etcd-main-2"], "leadership would move from etcd-main-1 to etcd-main-2"),
    ],
)
def test_a_dry_run_says_what_it_would_do_and_does_nothing(
    menagerie: Menagerie, world: World, arguments: list[str], text: str
) -> None:
    done = menagerie("etcd", *arguments, "--dry-run")
    assert done.code == 0, done.err
    assert text in done.out
    assert all(agent.requests == [] for agent in world.agents.values())


@pytest.mark.parametrize(("ailment", "code"), [("Unable to fetch the alarm list", 2), ("Active Alarm(s): NOSPACE ", 0)])
def test_a_member_too_slow_to_list_alarms_blocks_a_replacement_and_an_alarm_does_not(
    menagerie: Menagerie, world: World, ailment: str, code: int
) -> None:
    world.changes = {"etcd-main-2": down(), "etcd-main-3": {"problem": ailment}}
    done = menagerie("etcd", "replace", "lab", "main", "etcd-main-2", "--dry-run")
    assert done.code == code, done.err
    assert (f"another member is unhealthy (etcd-main-3: {ailment})" in done.err) == bool(code)


def test_a_file_without_facts_needs_no_facts(menagerie: Menagerie, world: World, tmp_path: Path) -> None:
    file = tmp_path / "main.db"
    file.write_bytes(b"x" * 544)
    bare = menagerie("etcd", "restore", "lab", "main", "--file", str(file))
    assert (bare.code, "to restore it anyway: --no-facts" in bare.err) == (2, True)
    accepted = menagerie("etcd", "restore", "lab", "main", "--file", str(file), "--no-facts", "--dry-run")
    assert (accepted.code, "only its own digest is checked" in accepted.err) == (0, True)
    facts = tmp_path / "main.db.json"
    facts.write_text('{"etcd": "main"}')
    assert (
        "it lacks time, revision, hash, cluster" in menagerie("etcd", "restore", "lab", "main", "--file", str(file)).err
    )
    now = datetime.now(UTC).isoformat()
    facts.write_text(f'{{"etcd": "main", "time": "{now}", "revision": 60, "hash": "0a", "cluster": "lab"}}')
    known = menagerie("etcd", "restore", "lab", "main", "--file", str(file), "--dry-run")
    assert "would be lost" not in known.out
    assert "in the last 0 minutes will be lost: 13 revisions, from 60" in known.out


def test_after_a_no_nothing_was_touched_and_the_message_says_so(menagerie: Menagerie, world: World) -> None:
    done = menagerie("etcd", "recover-space", "lab", "main", typed="n\n")
    assert (done.code, "Nothing was changed." in done.err) == (1, True)


@pytest.mark.parametrize(
    "verb", [["restore", "lab", "events", "--to-empty"], ["replace", "lab", "main", "etcd-main-2"]]
)
def test_json_without_yes_sets_no_data_aside(menagerie: Menagerie, world: World, verb: list[str]) -> None:
    done = menagerie("etcd", *verb, *(["--although-healthy"] if "replace" in verb else []), "--json")
    assert (done.code, "--json does not ask. Nothing was changed." in done.err) == (2, True)
    assert not any(agent.requests for agent in world.agents.values())


def test_forget_lists_the_deleted_folders_of_each_member(menagerie: Menagerie, world: World) -> None:
    done = menagerie("etcd", "forget", "lab", "main", "--older-than", "7d", "--yes")
    assert done.out.splitlines() == [f"etcd-main-{n}: before-x" for n in (1, 2, 3)]
    assert world.agents["etcd-main-1"].requests == [("forget", {"older_than_s": 604800.0})]


@pytest.mark.parametrize(
    ("which", "names"),
    [(("--older-than", "7d"), "before-x"), (("--token", "x"), "before-x"), (("--token", "restore-1"), "restore-1")],
)
def test_a_dry_run_of_forget_names_the_folders_and_a_real_one_asks(
    menagerie: Menagerie, world: World, which: tuple[str, str], names: str
) -> None:
    dry = menagerie("etcd", "forget", "lab", "main", *which, "--dry-run")
    assert (dry.code, dry.out.splitlines()) == (0, [f"would delete on etcd-main-{n}: {names}" for n in (1, 2, 3)])
    refused = menagerie("etcd", "forget", "lab", "main", *which)
    assert (refused.code, "--yes" in refused.err, "--dry-run" in refused.err) == (2, True, True)
    assert menagerie("etcd", "forget", "lab", "main", *which, typed="n\n").code == 1
    assert all(agent.requests == [] for agent in world.agents.values())


def test_ages_that_an_older_agent_does_not_report_are_not_guessed(
    menagerie: Menagerie, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(NoAgent, "state", lambda _: {"kept_aside": {"before-x": 1}})
    dry = menagerie("etcd", "forget", "lab", "main", "--older-than", "7d", "--dry-run")
    assert (dry.code, "./menagerie etcd roll lab main" in dry.err) == (2, True)


def test_a_dry_run_of_a_backup_names_the_host_that_would_make_it(
    menagerie: Menagerie, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("operations.backups.with_backups", lambda *_: {"main": None})
    statuses = {f"etcd-main-{n}": dataclasses.replace(STATUS, id=f"{n}") for n in (1, 2, 3)}
    monkeypatch.setattr(
        "operations.backups.reach",
        lambda *given: dataclasses.replace(world.reach(*given), client=SimpleNamespace(statuses=lambda: statuses)),
    )
    done = menagerie("etcd", "backup", "lab", "--dry-run")
    assert (done.code, done.out) == (0, "etcd main: etcd-main-2 would make the backup\n")
    assert all(agent.requests == [] for agent in world.agents.values())


def test_a_failure_of_an_agent_is_a_document_with_json(menagerie: Menagerie, world: World) -> None:
    done = menagerie("etcd", "restore", "lab", "events", "--to-empty", "--yes", "--json")
    assert (done.code, done.json["error"]["code"]) == (1, "etcd-agent")


@pytest.mark.parametrize(
    "verb", ["backup", "restore", "replace", "recover-space", "defragment", "move-leader", "forget"]
)
def test_the_help_of_each_verb_has_examples_that_fit(menagerie: Menagerie, verb: str, monkeypatch: Any) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    page = menagerie("etcd", verb, "--help")
    _, examples = page.out.split("Examples")
    lines = [line.strip() for line in examples.splitlines() if line.strip()]
    assert lines and all(line.startswith(f"./menagerie etcd {verb}") for line in lines)


@pytest.fixture
def rolled(world: World, monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """All hosts run the payload in their stores. text: that payload. took: the hosts that were rolled."""
    from operations import backups
    from operations.etcds import roll

    text = json.dumps({"files": [], "downloads": [], "disks": [], "packages": [], "users": [], "start": ["a.timer"]})
    old = json.dumps({**json.loads(text), "start": []})
    sha256 = hashlib.sha256(text.encode()).hexdigest()
    fake = SimpleNamespace(text=text, took=[], running={"sha256": sha256, "whole": True})
    names = [f"etcd-{role}-{n}" for role in ("main", "events") for n in (1, 2, 3)]
    access = SimpleNamespace(etcd_payloads=dict.fromkeys(names, text))
    monkeypatch.setattr(stack, "access_to", lambda *_: access)
    monkeypatch.setattr(backups, "newest_age", lambda *_: lambda: 60.0)
    monkeypatch.setattr(NoAgent, "payload", lambda _: json.loads(old), raising=False)
    world.changes = {name: {"agent": AGENT | {"payload": fake.running}} for name in names}
    monkeypatch.setattr("operations.record.one_operation", lambda *_, **__: nullcontext(Unrecorded()))

    def take(plan: Any, operation: Any, step: Any, report: Any) -> None:
        fake.took += [change.host.name for change in plan.changes]

    monkeypatch.setattr(roll, "roll", take)
    return fake


def test_a_roll_has_nothing_to_do_if_every_host_runs_its_stores_payload(
    menagerie: Menagerie, rolled: SimpleNamespace
) -> None:
    done = menagerie("etcd", "roll", "lab")
    assert (done.code, done.out) == (0, "nothing to do: every host runs the payload in its store\n")
    assert menagerie("etcd", "roll", "lab", "--json").json["hosts"] == []


def test_a_roll_shows_differences_asks_and_takes_events_first_and_leaders_last(
    menagerie: Menagerie, rolled: SimpleNamespace
) -> None:
    rolled.running["sha256"] = "0" * 64
    dry = menagerie("etcd", "roll", "lab", "--dry-run")
    assert (dry.code, dry.out) == (0, "would move 6 hosts to another payload\n")
    assert "start: +a.timer" in dry.err
    refused = menagerie("etcd", "roll", "lab", "events")
    assert refused.code == 2
    assert "./menagerie etcd roll lab events --yes" in refused.err
    assert menagerie("etcd", "roll", "lab", typed="no").code == 1
    assert rolled.took == []
    done = menagerie("etcd", "roll", "lab", "--yes")
    assert (done.code, done.out) == (0, "6 hosts run the payloads in their stores\n")
    events, main = ([f"etcd-{role}-{n}" for n in (2, 3, 1)] for role in ("events", "main"))
    assert rolled.took == [*events, *main]
    (first, *_) = menagerie("etcd", "roll", "lab", "main", "--json").json["hosts"]
    assert (first["host"], first["runs"], first["differences"]) == ("etcd-main-2", "0" * 64, ["start: +a.timer"])


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"etcd-main-2": down()}, "etcd-main-2: context deadline exceeded"),
        ({"etcd-main-2": {"agent": {}, "agent_error": "no answer"}}, "no answer; docs/runbooks/etcd-agent-silent.md"),
    ],
)
def test_a_roll_is_refused_while_a_member_is_unhealthy_for_another_reason(
    menagerie: Menagerie, world: World, rolled: SimpleNamespace, changes: dict[str, Any], text: str
) -> None:
    for name, change in changes.items():
        world.changes[name] = world.changes[name] | change
    world.changes["etcd-main-1"] = {"agent": AGENT | {"payload": {"sha256": "0" * 64, "whole": True}}}
    done = menagerie("etcd", "roll", "lab")
    assert done.code == 2
    assert text in done.err
    assert rolled.took == []
