from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from clients.access import ROOT
from cluster.load import find_cluster, load_cluster
from operations.build import STEPS
from tests.bench import machine, toolkit
from tests.bench.group import CommandError, Cost, cpu_seconds, process_name, pss_bytes
from tests.waiting import until

LAB = load_cluster(find_cluster("lab", ROOT))


def up_of(lines: list[tuple[float, str]]) -> Cost:
    return Cost(100.0, 140.0, 9.0, tuple(lines), "")


def test_the_steps_of_up_end_when_their_lines_are_printed() -> None:
    lines = [(101.0 + number, f" {number + 1}/6    1.0 s ✓ {name}  a detail\n") for number, name in enumerate(STEPS)]
    up = up_of([(100.5, "something else\n"), *lines])
    ends = toolkit.step_ends(up)
    assert ends[toolkit.NODES_READY] == 105.0
    assert list(toolkit.step_seconds(up.began, ends).values()) == [1.0] * len(STEPS)


def test_a_failed_step_is_not_done() -> None:
    assert toolkit.done_step(" 1/6    1.0 s ✗ cloud side\n") is None


def test_an_up_that_never_reports_ready_is_no_measurement() -> None:
    with pytest.raises(CommandError, match="nodes Ready"):
        toolkit.step_ends(up_of([(101.0, " 1/6    1.0 s ✓ machine and programs\n")]))


def test_every_machine_of_the_lab_is_counted_once() -> None:
    names = toolkit.host_names(LAB)
    assert len(names) == len(set(names)) == 12


@pytest.mark.parametrize(
    ("name", "text", "seconds"),
    [("cpuacct.usage", "1500000000\n", 1.5), ("cpu.stat", "usage_usec 2500000\nuser_usec 1\n", 2.5)],
)
def test_cpu_time_is_read_from_both_versions_of_control_groups(
    tmp_path: Path, name: str, text: str, seconds: float
) -> None:
    (tmp_path / name).write_text(text)
    assert cpu_seconds(tmp_path) == seconds


def test_a_hierarchy_without_cpu_time_returns_none(tmp_path: Path) -> None:
    (tmp_path / "cpu.stat").write_text("nr_periods 0\nthrottled_time 0\n")
    assert cpu_seconds(tmp_path) is None
    assert cpu_seconds(tmp_path / "none") is None


def test_memory_of_a_process_is_read_and_is_zero_after_its_end() -> None:
    process = subprocess.Popen(["sleep", "60"])
    try:
        until(lambda: pss_bytes(process.pid), "it has no memory", 10, 0.01)
        assert 0 < pss_bytes(process.pid) < pss_bytes(os.getpid())
    finally:
        process.kill()
        process.wait()
    assert pss_bytes(process.pid) == 0


@pytest.mark.parametrize(
    ("argv", "name"),
    [
        (["/x/.venv/bin/python", "-P", "-m", "cli", "up"], "python cli"),
        (["/x/bin/python3", "/x/bin/ansible-playbook", "-i", "hosts"], "python3 ansible-playbook"),
        (["/x/pulumi", "up"], "pulumi"),
        ([], "gone"),
    ],
)
def test_a_process_has_a_readable_name(argv: list[str], name: str) -> None:
    assert process_name(argv) == name


def test_the_machine_is_described_from_proc(tmp_path: Path) -> None:
    (tmp_path / "cpu").write_text("processor\t: 0\nmodel name\t: A CPU @ 2.0: GHz\n\nprocessor\t: 1\n")
    (tmp_path / "mem").write_text("MemTotal:       25165824 kB\nMemFree: 1 kB\n")
    this = machine.read(tmp_path / "cpu", tmp_path / "mem")
    assert (this.cpu, this.memory_gib) == ("A CPU @ 2.0: GHz", 24.0)
    assert this.cores == len(os.sched_getaffinity(0))
