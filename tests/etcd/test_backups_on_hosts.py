"""Backups and drills of a real etcd with three members, with restic and a real bucket server."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from etcd.host.menagerie_etcd import backup, members
from etcd.host.menagerie_etcd.repository import Repository, RepositoryError
from tests.etcd.backup_support import Buckets, Fleet, Hosts
from tests.etcd.real import until
from tests.programs import PROGRAMS, needs

NEEDED = ("etcd", "etcdctl", "etcdutl", "restic", "versitygw")
NAMES = ("etcd-main-1", "etcd-main-2", "etcd-main-3")


pytestmark = needs(NEEDED)


@pytest.fixture(scope="module")
def _on_path() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        folders = [str(PROGRAMS[name].parent) for name in NEEDED]
        patch.setenv("PATH", os.pathsep.join([*folders, os.environ["PATH"]]))
        yield


@pytest.fixture(scope="module")
def buckets(tmp_path_factory: pytest.TempPathFactory, _on_path: None) -> Iterator[Buckets]:
    server = Buckets(PROGRAMS["versitygw"], tmp_path_factory.mktemp("buckets"))
    try:
        server.start("backups")
        yield server
    finally:
        server.stop()


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory, _on_path: None) -> Iterator[Fleet]:
    etcd = Fleet(tmp_path_factory.mktemp("etcd"), NAMES)
    try:
        etcd.start()
        for number in range(40):
            etcd.ctl("put", f"/registry/configmaps/default/c{number % 30}", "x" * 2000)
        etcd.ctl("del", "/registry/configmaps/default/c0")
        yield etcd
    finally:
        for name in list(etcd.running):
            etcd.kill(name)


@pytest.fixture
def hosts(fleet: Fleet, buckets: Buckets, tmp_path: Path) -> Hosts:
    return Hosts(fleet, buckets.repository(f"apes/{tmp_path.name}"), tmp_path)


def _followers(fleet: Fleet) -> list[str]:
    leader = fleet.leader()
    return [name for name in NAMES if name != leader]


def _files(buckets: Buckets, hosts: Hosts, kind: str) -> list[Path]:
    folder = buckets.folder / "data" / hosts.repository.url.split("/", 3)[3] / kind
    return sorted(path for path in folder.rglob("*") if path.is_file())


def test_only_one_of_the_hosts_makes_a_backup(fleet, hosts):
    results = {name: hosts.run("backup", name, "--in-turn") for name in NAMES}
    first = _followers(fleet)[0]
    assert [code for code, _ in results.values()] == [0, 0, 0], results
    assert results[first][1].startswith("backup ")
    assert all(f"it is the turn of {first}" in text for name, (_, text) in results.items() if name != first)
    (backup,) = hosts.repository.snapshots()
    assert backup.tags["member"] == first


def test_a_backup_records_what_a_restore_must_show(fleet, hosts):
    assert hosts.run("backup", _followers(fleet)[0])[0] == 0
    (backup,) = hosts.repository.snapshots("backup")
    (status,) = json.loads(fleet.ctl("endpoint", "status", "-w", "json", member=NAMES[0]))
    header = status["Status"]["header"]
    assert backup.tags["keys"] == "29"
    assert backup.tags["revision"] == str(header["revision"])
    assert backup.tags["cluster_id"] == format(header["cluster_id"], "x")
    assert backup.tags["etcd_version"] == status["Status"]["version"]
    assert (backup.tags["cluster"], backup.tags["etcd"], backup.kind) == ("apes", "main", "backup")
    assert abs(backup.time - time.time()) < 60


def test_a_drill_restores_the_newest_backup_and_records_that_it_is_good(fleet, hosts):
    first, second = _followers(fleet)
    hosts.run("backup", first)
    junk = hosts.place(second).work / "data"
    junk.mkdir(parents=True)
    (junk / "of-a-killed-run").write_text("x")
    code, output = hosts.run("drill", second, "--in-turn")
    assert (code, output[:6]) == (0, "backup"), output
    backup_, drill_ = hosts.repository.snapshots("backup")[0], hosts.repository.snapshots("drill")[0]
    recorded = {key: drill_.tags[key] for key in ("of", "ok", "keys", "member")}
    assert recorded == {"of": backup_.id, "ok": "yes", "keys": "29", "member": second}
    assert not hosts.place(second).work.exists()
    assert "the next drill is due in 23." in hosts.run("drill", second, "--in-turn")[1]
    assert f"it is the turn of {second}" in hosts.run("drill", first, "--in-turn")[1]


def test_a_flipped_byte_in_the_repository_is_found_reported_and_recorded(fleet, hosts, buckets):
    hosts.run("backup", _followers(fleet)[0])
    pack = max(_files(buckets, hosts, "data"), key=lambda path: path.stat().st_size)
    bytes_ = bytearray(pack.read_bytes())
    bytes_[len(bytes_) // 2] ^= 1
    pack.write_bytes(bytes_)
    code, output = hosts.run("drill", _followers(fleet)[1])
    assert code == 1
    assert "drill of etcd main failed: backup " in output
    (drilled,) = hosts.repository.snapshots("drill")
    assert drilled.tags["ok"] == "no"
    assert drilled.tags["why"]


def test_a_backup_whose_hash_differs_from_the_record_is_not_good(fleet, hosts, tmp_path):
    name = _followers(fleet)[0]
    place, settings = hosts.place(name), hosts.settings(name)
    repository = place.repository()
    repository.ensure()
    file = tmp_path / "main.db"
    members.etcdctl(settings, [fleet.urls[name]], "snapshot", "save", str(file))
    repository.put(file, "main.db", {"kind": "backup", **backup.facts(settings, file), "hash": "00000000"})
    code, output = hosts.run("drill", name)
    assert code == 1
    assert "but 00000000 was recorded" in output


def test_a_killed_backup_does_not_block_the_next_one(fleet, hosts, buckets):
    name = _followers(fleet)[0]
    hosts.run("backup", name)
    process = hosts.start("backup", name)
    until(lambda: bool(_files(buckets, hosts, "locks")) or process.poll() is not None, "a lock of the run", 40)
    hosts.kill(process)
    code, output = hosts.run("backup", name)
    assert code == 0, output
    assert hosts.run("drill", name)[0] == 0
    assert _files(buckets, hosts, "locks") == []


def test_the_lock_of_a_prune_that_was_killed_on_this_host_is_removed(fleet, hosts, buckets):
    name = _followers(fleet)[0]
    hosts.run("backup", name)
    process = hosts.start("drill", name)
    until(lambda: bool(_files(buckets, hosts, "locks")) or process.poll() is not None, "a lock of the drill", 40)
    hosts.kill(process)
    assert hosts.run("backup", name)[0] == 0


def test_backups_older_than_the_retention_are_removed_and_the_newest_stays(fleet, hosts, buckets, tmp_path):
    name = _followers(fleet)[0]
    hosts.run("backup", name)
    old = Repository(hosts.repository.url, hosts.repository.password, hosts.repository.environment)
    source = tmp_path / "old.db"
    source.write_bytes(os.urandom(2000))
    for hours in (100, 50, 2):
        moment = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(time.time() - hours * 3600))
        old._run("backup", "--json", "--tag=kind=backup", f"--tag=n={hours}", f"--time={moment}", str(source))
    assert len(old.snapshots("backup")) == 4
    packs = len(_files(buckets, hosts, "data"))
    assert hosts.run("drill", name)[0] == 0
    assert [each.tags.get("n", "new") for each in old.snapshots("backup")] == ["new", "2"]
    old.forget(1)
    old.prune()
    assert [each.tags.get("n", "new") for each in old.snapshots("backup")] == ["new"]
    assert len(_files(buckets, hosts, "data")) < packs
    old.forget(1)
    assert (len(old.snapshots("backup")), len(old.snapshots("drill"))) == (1, 1)


def test_another_member_steps_in_if_nobody_made_a_backup_in_time(fleet, hosts):
    first, second = _followers(fleet)
    hosts.every = 0.001
    hosts.run("backup", first)
    code, output = hosts.run("backup", second, "--in-turn")
    assert code == 0
    assert f"it is the turn of {first}, but the newest backup is 0 min old" in output
    assert hosts.repository.snapshots("backup")[0].tags["member"] == second


def test_the_next_follower_has_the_turn_while_one_is_down_and_a_last_member_makes_the_backup(fleet, hosts):
    first, second = _followers(fleet)
    fleet.kill(first)
    try:
        assert members.in_turn(members.health(hosts.settings(second))) == second
        assert hosts.run("backup", second, "--in-turn")[0] == 0
        leader = fleet.leader()
        fleet.kill(leader)
        code, output = hosts.run("backup", second, "--in-turn")
        assert (code, output[:7]) == (0, "backup "), output
        fleet.start(leader)
    finally:
        fleet.start(*(name for name in NAMES if name not in fleet.running))


def test_an_etcd_that_does_not_answer_is_reported_without_a_failed_unit(hosts):
    hosts.fleet.urls, urls = dict.fromkeys(NAMES, "https://127.0.0.1:1"), hosts.fleet.urls
    try:
        code, output = hosts.run("backup", NAMES[0], "--in-turn")
        code_of_backup, failed = hosts.run("backup", NAMES[0])
    finally:
        hosts.fleet.urls = urls
    assert (code, output.strip()) == (0, "etcd-main-1 does not answer; it is the turn of no member")
    assert code_of_backup == 1
    assert failed.startswith("no backup of etcd main: etcdctl exited with")


def test_a_wrong_password_and_a_missing_repository_are_distinguished(fleet, hosts):
    with pytest.raises(RepositoryError, match="there is no repository at s3:http://127.0.0.1"):
        hosts.repository.snapshots()
    assert not hosts.repository.exists()
    hosts.run("backup", _followers(fleet)[0])
    wrong = Repository(hosts.repository.url, "another", hosts.repository.environment)
    with pytest.raises(RepositoryError, match="the password is not that of s3:http://127.0.0.1"):
        wrong.snapshots()
