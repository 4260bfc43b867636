"""Role roce under the real ansible-playbook. Its declarations are recorded, not applied; the host's program is a script."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from cluster.roce import Device, Roce
from network.roce.host import settings
from tests.roles import playing
from tests.roles.placed import placed

ROOT = Path(__file__).parents[2]
RAILS = {"rail-0": Device(pci="0000:1a:00.0"), "rail-1": Device(interface="ens2f0np0")}
SETTINGS = settings(Roce(rails={"gpu": RAILS}), "gpu")

NOTING = """
import json, os, sys
from ansible.module_utils.basic import _load_params

if __name__ == "__main__":
    params = {key: value for key, value in _load_params().items() if not key.startswith("_ansible")}
    with open(os.environ["DECLARED"], "w") as out:
        json.dump(params, out)
    sys.exit(print(json.dumps({"changed": False})))
"""
SCRIPT = """#!/bin/sh
echo "$*" >> FOLDER/calls
cat FOLDER/answer
exit $(cat FOLDER/code)
"""
PLAY = """
- hosts: localhost
  connection: local
  gather_facts: false
  roles: [{role: roce, when: roce_settings is defined}]
"""


class Ran(NamedTuple):
    code: int
    out: str
    calls: list[str]
    declared: dict[str, Any]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("library")
    (folder / "host_state.py").write_text(NOTING)
    return folder


@pytest.fixture
def play(tmp_path: Path, library: Path):
    """Return a function that runs the role on this machine. `answer` is the output of menagerie-roce, `code` its exit code."""
    (tmp_path / "play.yml").write_text(PLAY)
    program = tmp_path / "menagerie-roce"

    def run(*words: str, answer: Any = None, code: int = 0, **variables: Any) -> Ran:
        if answer is not None:
            program.write_text(SCRIPT.replace("FOLDER", str(tmp_path)))
            program.chmod(0o755)
            (tmp_path / "answer").write_text(json.dumps(answer))
            (tmp_path / "code").write_text(str(code))
        extra_vars = json.dumps({"_roce_program": str(program), **variables})
        calls, declared = tmp_path / "calls", tmp_path / "declared.json"
        environment = {
            **os.environ,
            "ANSIBLE_ROLES_PATH": str(ROOT / "roles"),
            "ANSIBLE_LIBRARY": str(library),
            "ANSIBLE_LOOKUP_PLUGINS": str(ROOT / "roles" / "lookups"),
            "ANSIBLE_PYTHON_INTERPRETER": sys.executable,
            "DECLARED": str(declared),
            "LC_ALL": "C.UTF-8",
        }
        command = [*playing.words(environment), "-i", "localhost,", "-e", extra_vars, *words]
        done = subprocess.run(
            [*command, str(tmp_path / "play.yml")],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        return Ran(
            done.returncode,
            done.stdout + done.stderr,
            calls.read_text().splitlines() if calls.exists() else [],
            json.loads(declared.read_text()) if declared.exists() else {},
        )

    return run


def recap(out: str) -> dict[str, int]:
    return {name: int(number) for name, number in re.findall(r"(\w+)=(\d+)", out.rpartition("PLAY RECAP")[2])}


def rail(**more: Any) -> dict[str, Any]:
    return {"rails": [{"rail": "rail-0", "changed": [], "wrong": [], "notes": [], **more}]}


def test_the_role_declares_a_program_a_unit_per_rail_and_what_starts_it(play, tmp_path: Path) -> None:
    ran = play(answer=rail(), roce_settings=SETTINGS)
    assert (ran.code, recap(ran.out)["changed"], ran.calls) == (0, 0, ["apply --json"]), ran.out
    files = {file["path"]: file for file in ran.declared["files"]}
    assert json.loads(files["/etc/menagerie/roce.json"]["text"]) == SETTINGS
    (last,) = [number for number, file in enumerate(ran.declared["files"]) if file.get("mode") == "0755"]
    program = ran.declared["files"][: last + 1]
    assert {Path(file["path"]).parts[:5] for file in program[:-1]} == {("/", "usr", "local", "lib", "menagerie-roce")}
    command = [placed(program, tmp_path / "host"), "apply"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stderr.split(";")[0]) == (1, "/etc/menagerie/roce.json can't be read"), run
    rules = [
        line for line in files["/etc/udev/rules.d/90-menagerie-roce.rules"]["text"].splitlines() if line[:1] != "#"
    ]
    assert [(re.findall(r'(KERNELS|NAME)=="(\S+?)"', line), line.rpartition("=")[2]) for line in rules] == [
        ([("KERNELS", "0000:1a:00.0")], '"menagerie-roce@rail-0.service"'),
        ([("NAME", "ens2f0np0")], '"menagerie-roce@rail-1.service"'),
    ]
    assert [unit["unit"] for unit in ran.declared["units"]] == [f"menagerie-roce@{name}.service" for name in RAILS]
    assert all(set(unit["inputs"]) <= set(files) for unit in ran.declared["units"])
    assert files["/etc/nccl.conf"]["text"] == "NCCL_IB_TC=106\nNCCL_IB_GID_INDEX=3\n"
    assert files["/etc/nccl.conf"]["block"] is True
    assert "\n* hard memlock unlimited\n" in files["/etc/security/limits.d/90-menagerie-roce.conf"]["text"]
    drop_in = files["/etc/systemd/system/containerd.service.d/roce.conf"]["text"]
    assert drop_in == "[Service]\nLimitMEMLOCK=infinity\n"


def test_check_mode_reports_changes_by_others_without_repairing_them(play) -> None:
    ran = play("--check", answer=rail(changed=["PFC: 0 -> 1"]), code=2, roce_settings=SETTINGS, roce_memlock="65536")
    assert (ran.code, recap(ran.out)["changed"], ran.calls) == (0, 1, ["apply --json --check"]), ran.out
    files = {file["path"]: file["text"] for file in ran.declared["files"]}
    assert files["/etc/systemd/system/containerd.service.d/roce.conf"].endswith("LimitMEMLOCK=65536K\n")


def test_a_port_that_can_not_be_set_fails_the_host_with_its_message(play) -> None:
    ran = play(answer=rail(wrong=["ens1f0: Intel X710 (8086:1572) has no RDMA"]), code=1, roce_settings=SETTINGS)
    assert ran.code != 0
    assert "Intel X710 (8086:1572) has no RDMA" in ran.out


def test_check_mode_works_on_a_new_host_without_the_program(play) -> None:
    ran = play("--check", roce_settings=SETTINGS)
    assert (ran.code, ran.calls) == (0, []), ran.out


def test_a_host_without_a_fabric_is_left_alone(play) -> None:
    ran = play(answer=rail())
    assert (ran.code, ran.calls, ran.declared) == (0, [], {}), ran.out
