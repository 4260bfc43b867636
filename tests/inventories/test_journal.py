from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from cluster.shared import NewerDataError
from inventories.journal import ConfigureJournal

ROOT = Path(__file__).parents[2]
OLD, NEW = {"base": "old", "kubelet": "old"}, {"base": "new", "kubelet": "old"}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "state" / "workers.jsonl"


def test_a_host_is_only_in_the_state_that_a_run_completed(path):
    journal = ConfigureJournal(path)
    journal.begin({"w1": OLD})
    assert not ConfigureJournal(path).is_at("w1", OLD)
    journal.done({"w1": OLD})
    assert ConfigureJournal(path).is_at("w1", OLD)
    assert not ConfigureJournal(path).is_at("w1", NEW)
    assert not ConfigureJournal(path).is_at("w2", OLD)


def test_a_run_removes_the_states_it_leaves_before_it_starts(path):
    """An interrupted host is in neither state: going back to the old spec must not make it look done."""
    ConfigureJournal(path).begin({"w1": OLD, "w2": OLD})
    ConfigureJournal(path).done({"w1": OLD, "w2": OLD})
    ConfigureJournal(path).begin({"w1": NEW})
    assert not ConfigureJournal(path).is_at("w1", OLD)
    assert ConfigureJournal(path).is_at("w1", {"kubelet": "old"})
    assert ConfigureJournal(path).is_at("w2", OLD)


def test_a_second_run_to_the_same_state_removes_nothing(path):
    ConfigureJournal(path).begin({"w1": OLD})
    ConfigureJournal(path).done({"w1": OLD})
    ConfigureJournal(path).begin({"w1": OLD})
    assert ConfigureJournal(path).is_at("w1", OLD)


def test_runs_of_one_role_each_add_up(path):
    for role in OLD:
        journal = ConfigureJournal(path)
        journal.begin({"w1": {role: "old"}})
        journal.done({"w1": {role: "old"}})
    assert ConfigureJournal(path).is_at("w1", OLD)


@pytest.mark.parametrize(
    "torn", ['{"v":1,"host":"w2","ro', "\0\0\0", "[1]", '{"host":"w2","roles":{"base":"old"}}', '{"v":1}', "null"]
)
def test_a_cut_or_foreign_line_is_skipped_and_breaks_no_other(path, torn):
    ConfigureJournal(path).begin({"w1": OLD})
    ConfigureJournal(path).done({"w1": OLD})
    with path.open("a") as file:
        file.write(torn)
    assert ConfigureJournal(path).is_at("w1", OLD)
    assert not ConfigureJournal(path).is_at("w2", {"base": "old"})
    journal = ConfigureJournal(path)
    journal.begin({"w3": OLD})
    journal.done({"w3": OLD})
    assert ConfigureJournal(path).is_at("w3", OLD)


def test_a_line_of_a_newer_version_is_refused_and_nothing_is_written(path):
    ConfigureJournal(path).begin({"w1": OLD})
    with path.open("a") as file:
        file.write('{"v":2,"host":"w2","roles":{"base":"old"}}\n')
    before = path.read_text()
    with pytest.raises(NewerDataError, match="has version 2"):
        ConfigureJournal(path).begin({"w3": OLD})
    assert path.read_text() == before


def test_only_its_owner_reads_it(path):
    ConfigureJournal(path).begin({"w1": OLD})
    assert path.stat().st_mode & 0o777 == 0o600


def test_it_keeps_one_line_per_host_between_runs(path):
    for _ in range(3):
        journal = ConfigureJournal(path)
        journal.begin({"w1": OLD, "w2": OLD})
        journal.done({"w1": OLD})
        journal.done({"w2": OLD})
    ConfigureJournal(path).begin({})
    assert [json.loads(line)["host"] for line in path.read_text().splitlines()] == ["w1", "w2"]


def test_a_process_killed_while_writing_loses_no_host_that_it_reported(path):
    """The child prints each host after it is in the journal; all printed hosts must be in it after the kill."""
    program = (
        "import sys; from pathlib import Path; from inventories.journal import ConfigureJournal\n"
        "states = {f'w{n}': {'base': 'x' * 24} for n in range(100000)}\n"
        "journal = ConfigureJournal(Path(sys.argv[1])); journal.begin(states)\n"
        "for host in states: journal.done({host: states[host]}); print(host, flush=True)\n"
    )
    child = subprocess.Popen([sys.executable, "-c", program, str(path)], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    reported = [child.stdout.readline().strip() for _ in range(200)]
    os.kill(child.pid, signal.SIGKILL)
    reported += [line.strip() for line in child.stdout.read().splitlines(keepends=True) if line.endswith("\n")]
    child.wait()
    child.stdout.close()
    journal = ConfigureJournal(path)
    assert len(reported) >= 200
    assert [host for host in reported if not journal.is_at(host, {"base": "x" * 24})] == []
