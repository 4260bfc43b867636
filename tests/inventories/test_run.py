"""The runner of site.yml on this machine, with playbooks of a few tasks."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import tempfile
from pathlib import Path

import pytest

from cluster.errors import FailedError, RefusedError
from inventories.private import memory_folder, private_folder
from inventories.report import TaskStatus
from inventories.run import run

ROOT = Path(__file__).parents[2]
SITE = "- hosts: all\n  gather_facts: false\n  roles: [{role: tiny, tags: [tiny]}]\n"


@pytest.fixture
def play(tmp_path, monkeypatch, request):
    """play(tasks): a root folder like the repository's, with one role that has these tasks."""
    # Not below tmp_path: with xdist that path is too long for SSH's control socket.
    memory = tempfile.mkdtemp(prefix="mem-")
    request.addfinalizer(lambda: shutil.rmtree(memory, ignore_errors=True))
    monkeypatch.setenv("XDG_RUNTIME_DIR", memory)

    def made(tasks, site=SITE):
        root = tmp_path / "root"
        (root / "roles" / "tiny" / "tasks").mkdir(parents=True, exist_ok=True)
        (root / "roles" / "tiny" / "tasks" / "main.yml").write_text(tasks)
        (root / "site.yml").write_text(site)
        (root / "ansible.cfg").write_text("[defaults]\nstrategy = host_pinned\n")
        return root

    return made


def test_a_run_reports_and_shows_progress_host_by_host(play, local):
    root = play("- name: Waits\n  ansible.builtin.command: 'true'\n  changed_when: false\n")
    progress = []
    report = run(local("w1", "w2"), root=root, on_progress=progress.append)
    assert report.succeeded
    assert {host: (h.ok, h.changed, h.tasks) for host, h in report.hosts.items()} == {"w1": (1, 0, 1), "w2": (1, 0, 1)}
    assert {(p.host, p.task, p.status) for p in progress} == {
        (host, "Waits", status) for host in ("w1", "w2") for status in (TaskStatus.STARTED, TaskStatus.OK)
    }


def test_a_failed_host_is_reported_and_the_others_finish(play, local):
    root = play(
        "- name: Fails on one\n  ansible.builtin.command: test {{ inventory_hostname }} = w2\n  changed_when: false\n"
        "- name: Goes on\n  ansible.builtin.debug:\n    msg: here\n"
    )
    report = run(local("w1", "w2"), root=root)
    assert (report.failed, report.unreachable, report.exit_code) == (("w1",), (), 2)
    assert report.failures[0].task == "Fails on one"
    assert report.hosts["w2"].ok == 2


def test_the_first_failed_router_stops_the_run(play, local):
    root = play(
        "- name: Fails on one\n  ansible.builtin.command: test {{ inventory_hostname }} = w2\n  changed_when: false\n"
    )
    ours = (ROOT / "gateways.yml").read_text()
    (root / "gateways.yml").write_text(ours.replace("hosts: gateways", "hosts: all").replace("vpn_gateway", "tiny"))
    report = run(local("w1", "w2", "w3"), root=root, playbook="gateways.yml")
    assert (report.failed, tuple(report.hosts)) == (("w1",), ("w1",))
    assert run(local("w2"), root=root, playbook="gateways.yml").succeeded


def test_an_unreachable_host_does_not_count_as_failed(play, local):
    root = play("- name: Pings\n  ansible.builtin.ping:\n")
    inventory = local("w1", ansible_connection="ssh", ansible_host="127.0.0.1", ansible_port=1, ansible_timeout=2)
    report = run(inventory, root=root)
    assert (report.failed, report.unreachable, report.exit_code) == ((), ("w1",), 4)
    assert "127.0.0.1" in report.failures[0].message


def test_a_dead_host_delays_no_other_and_only_costs_its_own_attempts(play, local):
    """192.0.2.0/24 is for documentation (RFC 5737): nobody answers, or the network refuses at once."""
    root = play("- name: Pings\n  ansible.builtin.command: 'true'\n  changed_when: false\n")
    inventory = local("dead", "w1", "w2", "w3")
    dead = {"ansible_connection": "ssh", "ansible_host": "192.0.2.1", "ansible_timeout": 3}
    inventory.data["all"]["hosts"]["dead"] = dead
    ended = []
    report = run(inventory, root=root, on_progress=lambda p: ended.append(p.host) if p.is_last else None)
    assert report.unreachable == ("dead",)
    assert sorted(ended) == ["dead", "w1", "w2", "w3"]
    assert report.hosts["dead"].seconds < 3 + 5  # one attempt; the rest is for a busy machine
    assert all(report.hosts[host].succeeded for host in ("w1", "w2", "w3"))


@pytest.mark.parametrize("tags", [None, ["first"], ["second"]])
def test_the_last_progress_of_a_host_follows_the_end_of_all_its_tasks(play, local, tags):
    site = (
        "- hosts: all\n  gather_facts: false\n  roles: [{role: first, tags: [first]}, {role: second, tags: [second]}]\n"
    )
    root = play("", site)
    for role in ("first", "second"):
        for folder in ("tasks", "meta"):
            (root / "roles" / role / folder).mkdir(parents=True)
        (root / "roles" / role / "meta" / "argument_specs.yml").write_text("argument_specs: {main: {options: {}}}\n")
        task = f"- name: Runs {role}\n  ansible.builtin.command: 'true'\n  changed_when: false\n"
        (root / "roles" / role / "tasks" / "main.yml").write_text(task)
    updates = []
    report = run(local("w1", "w2"), root=root, tags=tags, on_progress=updates.append)
    for host in ("w1", "w2"):
        own = [progress for progress in updates if progress.host == host]
        assert [progress.is_last for progress in own] == [False] * (len(own) - 1) + [True]
        assert own[-1].number == report.hosts[host].tasks
    assert {time.task: time.hosts for time in report.times}["Runs " + (tags or ["second"])[0]] == 2


def test_check_mode_reports_changes_and_makes_none(play, local, tmp_path):
    target = tmp_path / "written"
    root = play(f"- name: Writes\n  ansible.builtin.copy:\n    content: new\n    dest: {target}\n    mode: '0644'\n")
    report = run(local("w1"), root=root, check=True, diff=True)
    assert report.changes == {"w1": ("Writes",)}
    assert "+new" in report.diffs["w1"]
    assert not target.exists()


def test_a_limit_reaches_only_its_hosts(play, local):
    root = play("- name: Pings\n  ansible.builtin.ping:\n")
    assert list(run(local("w1", "w2"), root=root, limit="w2").hosts) == ["w2"]


@pytest.mark.parametrize("asked", [{"limit": "w9"}, {"tags": ["tinny"]}])
def test_a_limit_or_tag_that_matches_nothing_starts_nothing(play, local, asked):
    with pytest.raises(RefusedError, match="INV-006"):
        run(local("w1"), root=play("- name: Pings\n  ansible.builtin.ping:\n"), **asked)
    assert list(memory_folder().iterdir()) == []


def test_hosts_that_no_play_touches_are_an_error(play, local):
    site = "- hosts: all:!w2\n  gather_facts: false\n  roles: [tiny]\n"
    with pytest.raises(RefusedError, match="never touched w2"):
        run(local("w1", "w2"), root=play("- name: Pings\n  ansible.builtin.ping:\n", site))


def test_an_invalid_playbook_is_reported_with_ansible_s_last_output(play, local):
    with pytest.raises(FailedError, match="no_such_module"):
        run(local("w1"), root=play("- name: Wrong\n  no_such_module:\n"))


def test_an_inventory_of_an_earlier_run_is_never_reused(play, local):
    root = play("- name: Pings\n  ansible.builtin.ping:\n")
    run(local("old"), root=root)
    assert list(run(local("new"), root=root).hosts) == ["new"]


def test_secrets_are_only_in_the_inventory_in_memory(play, local, monkeypatch):
    monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE", "operators-passphrase")
    root = play("- name: Pings\n  ansible.builtin.ping:\n")
    texts: dict[str, str] = {}
    modes = set()

    def look(_: object) -> None:
        (folder,) = memory_folder().iterdir()
        modes.add(folder.stat().st_mode & 0o777)
        for path in folder.rglob("*"):
            with contextlib.suppress(OSError):  # Ansible's files may disappear
                texts[str(path.relative_to(folder))] = path.read_text(errors="replace")

    report = run(local("w1", kubelet_token="abcdef.0123456789abcdef"), root=root, on_progress=look)
    assert report.succeeded
    assert [name for name, text in texts.items() if "abcdef.0123456789" in text] == ["inventory/hosts.json"]
    assert not [name for name, text in texts.items() if "operators-passphrase" in text]
    assert modes == {0o700}
    assert list(memory_folder().iterdir()) == []


def test_a_run_removes_what_a_killed_run_left(play, local):
    left = memory_folder() / "menagerie-run-killed"
    (left / "cp").mkdir(parents=True)
    (left / "lock").touch()
    run(local("w1"), root=play("- name: Pings\n  ansible.builtin.ping:\n"))
    assert list(memory_folder().iterdir()) == []


def test_the_folder_of_a_run_in_progress_is_left_alone(play):
    with private_folder() as one, private_folder() as other:
        assert one.exists()
        assert other.exists()
    assert not one.exists()


def test_a_run_can_be_cancelled(play, local):
    root = play("- name: Sleeps\n  ansible.builtin.command: sleep 60\n  changed_when: false\n")
    report = run(local("w1"), root=root, on_progress=lambda _: os.kill(os.getpid(), signal.SIGINT))
    assert report.canceled
    assert report.exit_code == 130


def test_a_run_whose_ansible_playbook_was_killed_is_not_a_success(play, local):
    def kill(progress):
        if progress.status is TaskStatus.OK:
            for entry in Path("/proc").glob("[0-9]*/stat"):
                # Another process may end between the two checks.
                with contextlib.suppress(OSError):
                    parent = int(entry.read_text().rpartition(")")[2].split()[1])
                    if parent == os.getpid() and b"ansible-playbook" in (entry.parent / "cmdline").read_bytes():
                        os.kill(int(entry.parent.name), signal.SIGKILL)

    tasks = "- name: Pings\n  ansible.builtin.ping:\n- name: Sleeps\n  ansible.builtin.command: sleep 60\n"
    with pytest.raises(FailedError, match="ended early"):
        run(local("w1"), root=play(tasks), on_progress=kill)


def test_host_keys_are_always_checked_and_connections_end_with_the_run(play, local):
    play("")
    from inventories.run import _connected, _environment, _Options

    options = _Options(False, False, None, (), Path("/key"))
    made = _connected(local("w1"), options, Path("/f/known_hosts"))["all"]
    arguments = made["vars"]["ansible_ssh_common_args"]["__ansible_unsafe"]
    assert "-o StrictHostKeyChecking=yes" in arguments
    assert made["hosts"]["w1"]["ansible_ssh_private_key_file"] == {"__ansible_unsafe": "/key"}
    # ansible-runner turns the check off in this variable, and ssh uses the first setting.
    environment = _environment({**os.environ, "ANSIBLE_HOST_KEY_CHECKING": "False"}, Path("/f"), ROOT)
    assert environment["ANSIBLE_HOST_KEY_CHECKING"] == "True"
