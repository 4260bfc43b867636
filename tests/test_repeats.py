"""Repeated runs of `make test`, and two of its targets at once, with a fake `make`."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from sandbox.lab import cgroups
from tests import beside, repeats

Make = Callable[[str], None]


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Make:
    """Return a function that installs a script as `make`."""
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")

    def write(script: str) -> None:
        (tmp_path / "make").write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / "make").chmod(0o755)

    return write


@pytest.mark.parametrize("code", [0, 2])
def test_a_row_says_whether_the_run_passed(make: Make, capfd: pytest.CaptureFixture[str], code: int) -> None:
    make(f"echo of $1; exit {code}")
    assert repeats.main() == bool(code)
    out = capfd.readouterr().out
    assert "of test\n" in out
    assert out.splitlines()[-1].endswith("| failed |" if code else "| green |")


def test_several_runs_stop_at_the_first_failure_with_a_row_for_each(
    make: Make, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    make(f"mkdir {tmp_path}/once")
    assert repeats.main(["--times", "5"]) == 1
    assert [line.split("| ")[-1] for line in capfd.readouterr().out.splitlines()[-2:]] == ["green |", "failed |"]


root = pytest.mark.skipif(os.geteuid() != 0, reason="control groups need root")


@root
@pytest.mark.parametrize(("first", "second"), [(0, 0), (2, 0), (0, 2)])
def test_both_targets_run_and_either_can_fail_the_run(
    make: Make, capfd: pytest.CaptureFixture[str], first: int, second: int
) -> None:
    make(f"echo of $1; [ $1 = lab ] && exit {first}; exit {second}")
    assert beside.main(["lab", "rest"]) == first + second
    assert capfd.readouterr().out == "of lab\nof rest\n"


@root
def test_the_second_target_gets_a_tenth_of_the_cpu_and_the_first_can_wait_for_it(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = f"{sys.executable} -P -c 'from tests import beside; beside.wait()'"
    files = [f"/sys/fs/cgroup/beside-{os.getpid()}/cpu.weight", f"/sys/fs/cgroup/*/beside-{os.getpid()}/cpu.shares"]
    make(
        f"""if [ $1 = lab ]; then
  sleep 0.2; {python}; touch {tmp_path}/lab
else
  cat {" ".join(files)} > {tmp_path}/part 2>/dev/null
  sleep 1; [ ! -e {tmp_path}/lab ]
fi"""
    )
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[1]))
    assert beside.main(["lab", "rest"]) == 0
    assert (tmp_path / "part").read_text().strip() in ("10", "102")
    assert not [group for group in cgroups.hierarchies() if (group / f"beside-{os.getpid()}").exists()]
