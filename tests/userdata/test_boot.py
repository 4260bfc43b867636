"""The boot program, against files and a web server of the test."""

from __future__ import annotations

import hashlib
import io
import subprocess
import tarfile
from pathlib import Path

import pytest

from userdata import boot

GOOD = b"#!/bin/sh\n"


def item(web, path, body=GOOD, **changes):
    url = f"{web.url}/program"
    return {
        "url": url,
        "sha256": hashlib.sha256(body).hexdigest(),
        "path": str(path),
        "members": [],
        "mode": 0o755,
    } | changes


def archive(**files):
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz") as tar:
        for name, body in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(body)
            tar.addfile(entry, io.BytesIO(body))
    return data.getvalue()


def test_a_program_is_downloaded_once_and_not_again(web, tmp_path, capsys):
    web.pages["/program"] = GOOD
    wanted = item(web, tmp_path / "bin" / "program")
    boot.download_all([wanted], tmp_path)
    boot.download_all([wanted], tmp_path)
    assert (tmp_path / "bin" / "program").read_bytes() == GOOD
    assert (tmp_path / "bin" / "program").stat().st_mode & 0o777 == 0o755
    assert web.asked == ["/program"]
    assert capsys.readouterr().out.count(wanted["url"]) == 1


def test_a_damaged_program_is_downloaded_again(web, tmp_path):
    web.pages["/program"] = GOOD
    (tmp_path / "program").write_bytes(GOOD[:-1])
    boot.download_all([item(web, tmp_path / "program")], tmp_path)
    assert (tmp_path / "program").read_bytes() == GOOD


def test_a_wrong_checksum_is_told_with_both_and_leaves_what_was_there(web, tmp_path):
    web.pages["/program"] = b"evil"
    (tmp_path / "program").write_bytes(b"old")
    with pytest.raises(boot.Failure) as told:
        boot.download_all([item(web, tmp_path / "program")], tmp_path)
    assert hashlib.sha256(b"evil").hexdigest() in str(told.value)
    assert f"expected {hashlib.sha256(GOOD).hexdigest()}" in str(told.value)
    assert [path.name for path in tmp_path.iterdir()] == ["program"]
    assert (tmp_path / "program").read_bytes() == b"old"


def test_every_download_that_fails_is_named_with_its_http_code(web, tmp_path):
    wanted = [item(web, tmp_path / name, url=f"{web.url}/{name}") for name in ("one", "two")]
    with pytest.raises(boot.Failure) as told:
        boot.download_all(wanted, tmp_path)
    assert [f"/{name}: HTTP 404 Not Found" in str(told.value) for name in ("one", "two")] == [True, True]


def test_a_mirror_that_is_down_is_told_with_the_url(tmp_path):
    wanted = {
        "url": "http://127.0.0.1:1/program",
        "sha256": "",
        "path": str(tmp_path / "p"),
        "members": [],
        "mode": 0o755,
    }
    with pytest.raises(boot.Failure, match=r"http://127\.0\.0\.1:1/program: .*refused"):
        boot.download_all([wanted], tmp_path)


def test_members_of_an_archive_are_taken_out_and_found_again_without_the_archive(web, tmp_path):
    web.pages["/program"] = body = archive(**{"etcd-v1/etcd": b"etcd", "etcd-v1/etcdctl": b"ctl"})
    members = [[f"etcd-v1/{name}", str(tmp_path / name)] for name in ("etcd", "etcdctl")]
    wanted = item(web, "", body, members=members)
    boot.download_all([wanted], tmp_path / "state")
    boot.download_all([wanted], tmp_path / "state")
    assert (tmp_path / "etcd").read_bytes() == b"etcd"
    assert len(web.asked) == 1
    (tmp_path / "etcdctl").write_bytes(b"changed")
    boot.download_all([wanted], tmp_path / "state")
    assert (tmp_path / "etcdctl").read_bytes() == b"ctl"


def test_a_member_that_the_archive_lacks_is_named(web, tmp_path):
    web.pages["/program"] = body = archive(other=b"x")
    wanted = item(web, "", body, members=[["etcd-v1/etcd", str(tmp_path / "etcd")]])
    with pytest.raises(boot.Failure, match="holds no file etcd-v1/etcd"):
        boot.download_all([wanted], tmp_path / "state")


def secret(name, path, owner, mode=0o600):
    return {"name": name, "path": str(path), "mode": mode, "owner": owner}


def store(values, silent=False):
    def read(name):
        if silent:
            return boot.STORE_SILENT, b"", "no route to host"
        return (0, values[name], "") if name in values else (1, b"", "HTTP 403 Forbidden")

    return read


def test_secrets_of_one_path_are_joined_in_their_order(tmp_path, owner):
    wanted = [secret(name, tmp_path / "ca.crt", owner, 0o644) for name in ("main", "events")]
    boot.place_secrets(wanted, store({"main": b"one", "events": b"two\n\n"}))
    assert (tmp_path / "ca.crt").read_bytes() == b"one\ntwo\n"
    assert (tmp_path / "ca.crt").stat().st_mode & 0o777 == 0o644


def test_a_secret_alone_is_kept_to_the_byte(tmp_path, owner):
    boot.place_secrets([secret("key", tmp_path / "key", owner)], store({"key": b"\0no newline"}))
    assert (tmp_path / "key").read_bytes() == b"\0no newline"
    assert (tmp_path / "key").stat().st_mode & 0o777 == 0o600


def test_no_secret_is_written_while_one_is_refused_and_all_refused_are_named(tmp_path, owner):
    wanted = [secret(name, tmp_path / name, owner) for name in ("a", "b", "c")]
    with pytest.raises(boot.Failure) as told:
        boot.place_secrets(wanted, store({"a": b"1"}))
    assert [f"secret {name} for" in str(told.value) for name in ("a", "b", "c")] == [False, True, True]
    assert "HTTP 403 Forbidden" in str(told.value)
    assert list(tmp_path.iterdir()) == []


def test_a_host_that_has_all_its_secrets_goes_on_without_the_store(tmp_path, owner, capsys):
    wanted = [secret("a", tmp_path / "a", owner)]
    boot.place_secrets(wanted, store({"a": b"1"}))
    boot.place_secrets(wanted, store({}, silent=True))
    assert (tmp_path / "a").read_bytes() == b"1"
    assert "no route to host" in capsys.readouterr().out


def test_a_host_that_lacks_a_secret_waits_for_the_store(tmp_path, owner):
    (tmp_path / "a").write_bytes(b"1")
    with pytest.raises(boot.Failure, match="no route to host"):
        boot.place_secrets([secret(n, tmp_path / n, owner) for n in ("a", "b")], store({}, silent=True))


def test_a_rotated_secret_replaces_the_one_on_disk(tmp_path, owner):
    for value in (b"old", b"new"):
        boot.place_secrets([secret("a", tmp_path / "a", owner)], store({"a": value}))
    assert (tmp_path / "a").read_bytes() == b"new"


def test_a_file_that_is_already_right_is_not_written_again(tmp_path, owner):
    path = tmp_path / "file"
    assert boot.write(path, b"text", 0o640, owner) is True
    before = path.stat().st_ino
    assert boot.write(path, b"text", 0o640, owner) is False
    assert path.stat().st_ino == before
    path.chmod(0o666)
    assert boot.write(path, b"text", 0o640, owner) is True
    assert path.stat().st_mode & 0o777 == 0o640


def test_a_failed_step_is_told_and_repeated_until_it_succeeds(capsys):
    outcomes = [boot.Failure("no store"), boot.Failure("no store"), OSError("disk full"), None]
    delays = []

    def step():
        if outcome := outcomes.pop(0):
            raise outcome

    boot.until_done("secrets", step, delays.append)
    said = capsys.readouterr().out
    assert delays == [1.0, 2.0, 4.0]
    assert (said.count("no store"), said.count("disk full")) == (1, 1)
    assert "FAILED at secrets" in said


def test_the_delay_between_tries_has_a_limit():
    delays = []

    def step():
        if len(delays) < 10:
            raise boot.Failure("never")

    boot.until_done("units", step, delays.append)
    assert max(delays) == boot.LAST_DELAY_S


def test_units_start_last_and_only_after_everything_is_in_place(monkeypatch):
    done = []
    for name in ("name_this_host", "check_packages", "make_users", "place_files", "download_all", "place_secrets"):
        monkeypatch.setattr(boot, name, lambda *args, name=name: done.append(name))
    monkeypatch.setattr(boot, "start_units", lambda *args: done.append("start_units"))
    config: dict[str, list[str]] = {key: [] for key in ("packages", "users", "files", "downloads", "secrets", "start")}
    for _, step in boot.steps(config):
        step()
    assert done[-1] == "start_units"
    assert len(done) == 7


def test_a_unit_that_fails_is_named_with_its_last_words(monkeypatch):
    started = []

    def run(command, **options):
        if command[:2] == ["systemctl", "start"]:
            started.append(command[2])
            bad = command[2] == "two.service"
            return subprocess.CompletedProcess(command, int(bad), b"", b"Job failed." if bad else b"")
        return subprocess.CompletedProcess(command, 0, b"address in use\n", b"")

    monkeypatch.setattr(boot.subprocess, "run", run)
    with pytest.raises(boot.Failure, match=r"unit two\.service did not start: Job failed\.address in use"):
        boot.start_units(["one.service", "two.service", "three.service"])
    assert started == ["one.service", "two.service"]


@pytest.mark.parametrize("stale", ["", "10.0.0.9 host-1\n", "127.0.1.1 host-1.example host-1\n"])
def test_the_hosts_own_name_resolves_to_its_address_of_today(tmp_path, monkeypatch, stale):
    monkeypatch.setattr(boot.socket, "gethostname", lambda: "host-1")
    monkeypatch.setattr(boot, "own_address", lambda: "10.77.0.11")
    monkeypatch.setattr(boot, "write", lambda path, data, mode, owner: Path(path).write_bytes(data))
    hosts = tmp_path / "hosts"
    hosts.write_text(f"127.0.0.1 localhost\n{stale}")
    boot.name_this_host(hosts)
    assert hosts.read_text() == "127.0.0.1 localhost\n10.77.0.11 host-1\n"


def test_missing_packages_are_all_named(monkeypatch):
    def run(command, **options):
        return subprocess.CompletedProcess(command, 0, b"installed" if command[-1] == "python3" else b"", b"")

    monkeypatch.setattr(boot.subprocess, "run", run)
    with pytest.raises(boot.Failure, match="lacks the packages curl, jq"):
        boot.check_packages(["curl", "python3", "jq"])
