"""The boot program, on files and a web server of the test."""

from __future__ import annotations

import bz2
import hashlib
import io
import socket
import subprocess
import tarfile
import threading
from pathlib import Path

import pytest

from tests.userdata.placed import boot

GOOD = b"#!/bin/sh\n"
KEYS = ("packages", "disks", "users", "files", "downloads", "secrets", "start")


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
    download = item(web, tmp_path / "bin" / "program")
    boot.download_all([download], tmp_path)
    boot.download_all([download], tmp_path)
    assert (tmp_path / "bin" / "program").read_bytes() == GOOD
    assert (tmp_path / "bin" / "program").stat().st_mode & 0o777 == 0o755
    assert web.requested == ["/program"]
    assert capsys.readouterr().out.count(download["url"]) == 1


def test_a_damaged_program_is_downloaded_again(web, tmp_path):
    web.pages["/program"] = GOOD
    (tmp_path / "program").write_bytes(GOOD[:-1])
    boot.download_all([item(web, tmp_path / "program")], tmp_path)
    assert (tmp_path / "program").read_bytes() == GOOD


def test_a_wrong_checksum_is_reported_with_both_and_keeps_the_old_file(web, tmp_path):
    web.pages["/program"] = b"evil"
    (tmp_path / "program").write_bytes(b"old")
    with pytest.raises(boot.Failure) as failure:
        boot.download_all([item(web, tmp_path / "program")], tmp_path)
    assert hashlib.sha256(b"evil").hexdigest() in str(failure.value)
    assert f"expected {hashlib.sha256(GOOD).hexdigest()}" in str(failure.value)
    assert [path.name for path in tmp_path.iterdir()] == ["program"]
    assert (tmp_path / "program").read_bytes() == b"old"


def test_every_failed_download_is_named_with_its_http_code(web, tmp_path):
    download = [item(web, tmp_path / name, url=f"{web.url}/{name}") for name in ("one", "two")]
    with pytest.raises(boot.Failure) as failure:
        boot.download_all(download, tmp_path)
    assert [f"/{name}: HTTP 404 Not Found" in str(failure.value) for name in ("one", "two")] == [True, True]


def test_a_mirror_that_is_down_is_reported_with_the_url(tmp_path):
    download = {
        "url": "http://127.0.0.1:1/program",
        "sha256": "",
        "path": str(tmp_path / "p"),
        "members": [],
        "mode": 0o755,
    }
    with pytest.raises(boot.Failure, match=r"http://127\.0\.0\.1:1/program: .*refused"):
        boot.download_all([download], tmp_path)


def test_members_of_an_archive_are_extracted_and_recognised_later_without_the_archive(web, tmp_path):
    web.pages["/program"] = body = archive(**{"etcd-v1/etcd": b"etcd", "etcd-v1/etcdctl": b"ctl"})
    members = [[f"etcd-v1/{name}", str(tmp_path / name)] for name in ("etcd", "etcdctl")]
    download = item(web, "", body, members=members)
    boot.download_all([download], tmp_path / "state")
    boot.download_all([download], tmp_path / "state")
    assert (tmp_path / "etcd").read_bytes() == b"etcd"
    assert len(web.requested) == 1
    (tmp_path / "etcdctl").write_bytes(b"changed")
    boot.download_all([download], tmp_path / "state")
    assert (tmp_path / "etcdctl").read_bytes() == b"ctl"


def test_a_program_in_bzip2_is_unpacked_and_recognised_later_without_the_file(web, tmp_path):
    web.pages["/program.bz2"] = body = bz2.compress(GOOD)
    download = item(web, tmp_path / "restic", body, url=f"{web.url}/program.bz2")
    boot.download_all([download], tmp_path / "state")
    boot.download_all([download], tmp_path / "state")
    assert (tmp_path / "restic").read_bytes() == GOOD
    assert (tmp_path / "restic").stat().st_mode & 0o777 == 0o755
    assert len(web.requested) == 1
    (tmp_path / "restic").write_bytes(b"changed")
    boot.download_all([download], tmp_path / "state")
    assert (tmp_path / "restic").read_bytes() == GOOD


def test_a_file_that_does_not_match_its_extension_is_named(web, tmp_path):
    web.pages["/program.bz2"] = GOOD
    with pytest.raises(boot.Failure, match=r"/program.bz2: Invalid data stream"):
        boot.download_all([item(web, tmp_path / "restic", GOOD, url=f"{web.url}/program.bz2")], tmp_path)
    assert not (tmp_path / "restic").exists()


def test_names_in_an_archive_may_start_with_a_dot(web, tmp_path):
    """The upstream archive of CNI plugins has ./bridge."""
    web.pages["/program"] = body = archive(**{"./bridge": b"bridge"})
    boot.download_all([item(web, "", body, members=[["bridge", str(tmp_path / "bridge")]])], tmp_path / "state")
    assert (tmp_path / "bridge").read_bytes() == b"bridge"


def test_an_answer_that_is_not_http_is_reported_with_its_url(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def answer():
            connection, _ = listening.accept()
            with connection:
                connection.recv(4096)
                connection.sendall(b"SSH-2.0-OpenSSH\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        url = f"http://127.0.0.1:{listening.getsockname()[1]}/program"
        with pytest.raises(boot.Failure, match=f"^{url}: "):
            boot.fetch(url, "00", tmp_path / "program")
        thread.join()


def test_a_member_that_the_archive_lacks_is_named(web, tmp_path):
    web.pages["/program"] = body = archive(other=b"x")
    download = item(web, "", body, members=[["etcd-v1/etcd", str(tmp_path / "etcd")]])
    with pytest.raises(boot.Failure, match="holds no file etcd-v1/etcd"):
        boot.download_all([download], tmp_path / "state")


def test_a_file_that_is_already_right_is_not_written_again(tmp_path, owner):
    path = tmp_path / "file"
    assert boot.write(path, b"text", 0o640, owner) is True
    before = path.stat().st_ino
    assert boot.write(path, b"text", 0o640, owner) is False
    assert path.stat().st_ino == before
    path.chmod(0o666)
    assert boot.write(path, b"text", 0o640, owner) is True
    assert path.stat().st_mode & 0o777 == 0o640


def test_a_failed_step_is_reported_and_retried_until_it_succeeds(capsys):
    outcomes = [boot.Failure("no store"), boot.Failure("no store"), OSError("disk full"), None]
    delays = []

    def step():
        if outcome := outcomes.pop(0):
            raise outcome

    boot.until_done("secrets", step, delays.append)
    output = capsys.readouterr().out
    assert delays == [1.0, 2.0, 4.0]
    assert (output.count("no store"), output.count("disk full")) == (1, 1)
    assert "FAILED at secrets" in output


def test_the_delay_between_retries_is_limited():
    delays = []

    def step():
        if len(delays) < 10:
            raise boot.Failure("never")

    boot.until_done("units", step, delays.append)
    assert max(delays) == boot.LAST_DELAY_S


def test_units_start_after_everything_but_late_downloads_and_files_go_onto_mounted_disks(monkeypatch):
    done = []
    order = ["name_this_host", "check_packages", "mount_disks", "make_users", "place_files", "download_all"]
    order += ["place_secrets", "start_units"]
    for name in order:
        monkeypatch.setattr(boot, name, lambda *args, name=name: done.append(name))
    fetched: list[list[str]] = []

    def fetch(items, state):
        done.append("download_all")
        fetched.append([item["url"] for item in items])

    monkeypatch.setattr(boot, "download_all", fetch)
    config = {key: [] for key in KEYS}
    config["downloads"] = [{"url": "etcd", "late": False}, {"url": "restic", "late": True}]
    for _, step in boot.steps(config):
        step()
    assert done == [*order, "download_all"]
    assert fetched == [["etcd"], ["restic"]]


def test_a_unit_that_fails_is_named_with_its_last_output(monkeypatch):
    started = []

    def run(command, **options):
        if command[:2] == ["systemctl", "start"]:
            started.append(command[2])
            bad = command[2] == "two.service"
            return subprocess.CompletedProcess(command, int(bad), b"", b"Job failed.\n" if bad else b"")
        return subprocess.CompletedProcess(command, 0, b"address in use\n", b"")

    monkeypatch.setattr(boot.subprocess, "run", run)
    with pytest.raises(boot.Failure, match=r"unit two\.service did not start: Job failed\.\n  address in use$"):
        boot.start_units(["one.service", "two.service", "three.service"], set())
    assert started == ["one.service", "two.service"]


def test_a_started_unit_is_reported_once_however_often_a_later_one_fails(monkeypatch, capsys):
    failures = ["two.service"] * 3

    def run(command, **options):
        bad = command[:2] == ["systemctl", "start"] and command[2] in failures
        if bad:
            failures.remove(command[2])
        return subprocess.CompletedProcess(command, int(bad), b"", b"Job failed." if bad else b"")

    monkeypatch.setattr(boot.subprocess, "run", run)
    (start,) = [
        step for name, step in boot.steps({key: ["one.service", "two.service"] for key in KEYS}) if name == "units"
    ]
    boot.until_done("units", start, lambda _: None)
    output = capsys.readouterr().out
    assert [output.count(words) for words in ("one.service is up", "FAILED", "two.service is up")] == [1, 1, 1]


def test_the_output_of_a_unit_is_that_of_its_last_run(monkeypatch):
    commands = []

    def run(command, **options):
        commands.append(command)
        return subprocess.CompletedProcess(command, 0, b"0123\n" if command[1] == "show" else b"no token yet\n", b"")

    monkeypatch.setattr(boot.subprocess, "run", run)
    assert boot.last_words("join.service") == "no token yet\n"
    assert commands[-1] == ("journalctl", "-n8", "-ocat", "_SYSTEMD_INVOCATION_ID=0123")


@pytest.mark.parametrize("stale", ["", "10.0.0.9 host-1\n", "127.0.1.1 host-1.example host-1\n"])
def test_the_hosts_own_name_resolves_to_its_current_address(tmp_path, monkeypatch, stale):
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
