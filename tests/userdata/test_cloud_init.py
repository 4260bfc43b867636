from __future__ import annotations

import ast
import base64
import gzip
import os
import random
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from components.userdata import Payload, render, startup_script
from components.userdata.cloud_init import LIMIT_BYTES, UserDataTooLarge, boot_program
from components.userdata.payload import pack
from tests.userdata.placed import boot

BOOT = Path(__file__).parents[2] / "components" / "userdata" / "boot"
PAYLOAD = Payload('{"files": ["only in the store"]}\n')


class Store:
    """An empty store."""

    def __init__(self, script: str = "#!/usr/bin/python3\nraise SystemExit(1)\n") -> None:
        self._script = script

    def script(self) -> str:
        return self._script


STORE = Store()


def opened(text):
    """Return path -> (permissions, content) of the files in user data."""
    files = yaml.safe_load(text)["write_files"]
    return {file["path"]: (file.get("permissions"), content(file)) for file in files}


def content(file):
    if "encoding" not in file:
        return file["content"]
    assert file["encoding"] == "gz+b64"
    return gzip.decompress(base64.b64decode(file["content"])).decode()


def test_equal_input_gives_equal_bytes():
    assert render(PAYLOAD, STORE, "etcd-main-1") == render(Payload(PAYLOAD.text), Store(), "etcd-main-1")


def test_user_data_is_a_cloud_config_that_starts_the_boot_without_waiting_for_it():
    text = render(PAYLOAD, STORE)
    assert text.startswith("#cloud-config\n")
    assert yaml.safe_load(text)["runcmd"] == [
        ["systemctl", "daemon-reload"],
        ["systemctl", "enable", "--now", "--no-block", "menagerie-boot.service"],
    ]


def test_a_given_name_is_set_and_otherwise_the_cloud_names_the_host():
    named, unnamed = (yaml.safe_load(render(PAYLOAD, STORE, name)) for name in ("etcd-main-1", None))
    assert named["hostname"] == "etcd-main-1"
    assert "hostname" not in unnamed


def test_no_account_is_created():
    loaded = yaml.safe_load(render(PAYLOAD, STORE))
    assert (loaded["users"], loaded["ssh_pwauth"]) == ([], False)


def test_the_boot_program_gets_the_payloads_name_and_hash_but_not_its_text():
    files = opened(render(PAYLOAD, STORE))
    assert files[str(boot.PAYLOAD)] == (None, f"{PAYLOAD.sha256}  {PAYLOAD.name}\n")
    assert not [path for path, (_, text) in files.items() if "only in the store" in text]


def test_another_payload_gives_other_user_data_of_the_same_length():
    """So it replaces the host, and fits however large the cluster is."""
    short, long = render(PAYLOAD, STORE), render(Payload(PAYLOAD.text * 1000), STORE)
    assert short != long
    assert len(short) == len(long)


def test_the_programs_are_executable():
    files = opened(render(PAYLOAD, STORE))
    assert files["/usr/local/sbin/menagerie-boot"] == ("0755", boot_program())
    assert files[boot.STORE] == ("0700", STORE.script())
    for path in ("/usr/local/sbin/menagerie-boot", boot.STORE):
        assert files[path][1].startswith("#!/usr/bin/python3\n")
        compile(files[path][1], path, "exec")


def test_the_boot_program_is_one_file_in_which_every_name_is_defined_once():
    text = boot_program()
    command = [
        sys.executable,
        "-m",
        "ruff",
        "check",
        "--isolated",
        "--select",
        "F,PLC0414",
        "--target-version",
        "py37",
        "-",
    ]
    checked = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    defined = [
        node.name
        for path in sorted(BOOT.glob("*.py"))
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.FunctionDef | ast.ClassDef)
    ]
    assert len(defined) == len(set(defined)) > 0
    assert sorted(defined) == sorted(re.findall(r"^(?:def|class) (\w+)", text, re.MULTILINE))


def test_the_joined_file_is_no_longer_than_its_modules():
    apart = sum(len(pack(path.read_text())) for path in BOOT.glob("*.py"))
    assert len(pack(boot_program())) < 0.8 * apart


def test_user_data_above_the_smallest_clouds_limit_is_refused_with_the_size():
    noise = base64.b85encode(random.Random(1).randbytes(LIMIT_BYTES)).decode()
    with pytest.raises(UserDataTooLarge, match=rf"user data is \d{{5}} bytes, more than the limit of {LIMIT_BYTES}"):
        render(PAYLOAD, Store(noise))


def test_the_limit_is_that_of_aws():
    assert LIMIT_BYTES == 16 * 1024


@pytest.fixture
def booted(tmp_path):
    """Return booted(script), which runs a script like an agent and returns the files under a folder for / and the commands."""
    (tmp_path / "bin").mkdir()
    for name in ("systemctl", "hostnamectl"):
        program = tmp_path / "bin" / name
        program.write_text(f'#!/bin/sh\necho {name} "$@" >> {tmp_path}/commands\n')
        program.chmod(0o755)

    def run(script):
        (tmp_path / "commands").write_text("")
        for folder in ("/usr/local/", "/etc/systemd/", "/var/lib/"):
            script = script.replace(f" {folder}", f" {tmp_path}/root{folder}")
        path = f"{tmp_path}/bin:{os.environ['PATH']}"
        subprocess.run(["sh"], check=True, input=script.encode(), env={"PATH": path})
        files = [path for path in (tmp_path / "root").rglob("*") if path.is_file()]
        written = {f"/{path.relative_to(tmp_path / 'root')}": path for path in files}
        return written, (tmp_path / "commands").read_text().splitlines()

    return run


def test_a_startup_script_writes_the_files_of_cloud_init_and_the_payload(booted):
    files, commands = booted(startup_script(PAYLOAD, STORE, "etcd-main-1"))
    expected = opened(render(PAYLOAD, STORE, "etcd-main-1"))
    expected[str(boot.PAYLOAD.with_name(PAYLOAD.name))] = ("0600", PAYLOAD.text)
    assert {path: file.read_text() for path, file in files.items()} == {
        path: text for path, (_, text) in expected.items()
    }
    modes = {path: f"0{file.stat().st_mode & 0o777:o}" for path, file in files.items() if path != str(boot.PAYLOAD)}
    assert modes == {path: mode for path, (mode, _) in expected.items() if mode}
    assert commands == [
        "hostnamectl set-hostname etcd-main-1",
        "systemctl daemon-reload",
        "systemctl enable --now --no-block menagerie-boot.service",
    ]


def test_a_host_with_a_startup_script_does_not_fetch_its_payload(booted, monkeypatch):
    payload = Payload('{"start": ["a.service"]}\n')
    files, _ = booted(startup_script(payload, STORE))
    monkeypatch.setattr(boot, "PAYLOAD", files[str(boot.PAYLOAD)])
    monkeypatch.setattr(boot, "STORE", "/nowhere/to/ask")
    assert boot.load_payload() == {"start": ["a.service"]}


def test_a_host_that_reboots_with_another_script_does_not_change(booted):
    """cloud-init also reads user data only once in a machine's life."""
    booted(startup_script(PAYLOAD, STORE))
    other = Payload(PAYLOAD.text * 2)
    files, commands = booted(startup_script(other, STORE, "other"))
    assert files[str(boot.PAYLOAD)].read_text() == f"{PAYLOAD.sha256}  {PAYLOAD.name}\n"
    assert [command.split()[:2] for command in commands] == [["systemctl", "daemon-reload"], ["systemctl", "enable"]]


def test_a_script_without_a_name_leaves_it_to_the_cloud():
    assert "hostnamectl" not in startup_script(PAYLOAD, STORE)
