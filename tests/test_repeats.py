"""Repeated runs of `make test`, and two of its targets at once, with a fake `make`."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from sandbox.lab import cgroups
from tests import beside, repeats
from tests.waiting import until

ROOT = Path(__file__).parents[1]
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


def test_rows_fit_the_table_of_whole_runs(make: Make, capfd: pytest.CaptureFixture[str]) -> None:
    make("exit 0")
    assert repeats.main() == 0
    *head, row = capfd.readouterr().out.splitlines()[-3:]
    assert "\n".join(head) == repeats.HEAD
    assert f"\n{repeats.HEAD}\n" in (ROOT / "docs/explanation/speed.md").read_text()
    cells = row.split("|")
    assert len(cells) == len(head[0].split("|"))
    assert re.fullmatch(
        r" [\d-]{10} [\d:]{5} ; \w+ \d+ ; (warm|empty) ; [\d.]+ ; ; ; ; [\d.]+ ; [\d,]+ s ; green ",
        ";".join(cells[1:-1]),
    )


root = pytest.mark.skipif(os.geteuid() != 0, reason="control groups need root")


@root
@pytest.mark.parametrize(("first", "second"), [(0, 0), (2, 0), (0, 2)])
def test_both_targets_run_and_either_can_fail_the_run(
    make: Make, capfd: pytest.CaptureFixture[str], first: int, second: int
) -> None:
    make(f"echo of $1; case $1 in lab) exit {first} ;; rest) exit {second} ;; esac")
    assert beside.main(["build", "lab", "rest"]) == first + second
    assert capfd.readouterr().out == "of build\nof lab\nof rest\n"


@root
def test_the_second_target_gets_a_tenth_of_the_cpu_and_the_first_can_wait_for_it(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    files = [f"/sys/fs/cgroup/beside-{os.getpid()}/cpu.weight", f"/sys/fs/cgroup/*/beside-{os.getpid()}/cpu.shares"]
    make(
        f"""if [ $1 = lab ]; then
  sleep 0.2; {_WAITS_FOR_LAST}; touch {tmp_path}/lab
elif [ $1 = rest ]; then
  cat {" ".join(files)} > {tmp_path}/part 2>/dev/null
  sleep 1; [ ! -e {tmp_path}/lab ]
fi"""
    )
    assert beside.main(["build", "lab", "rest"]) == 0
    assert (tmp_path / "part").read_text().strip() in ("10", "102")
    assert not [group for group in cgroups.hierarchies() if (group / f"beside-{os.getpid()}").exists()]


_WAITS = f"{sys.executable} -P -c 'from tests import beside; beside.wait_for_programs()'"


@root
@pytest.mark.parametrize(
    ("is_missing", "script"),
    [
        (True, f"build) sleep 1; touch built ;; rest) {_WAITS}; [ -e built ] ;;"),
        (False, f"build) timeout 20 sh -c 'until [ -e rest ]; do sleep 0.1; done' ;; rest) {_WAITS}; touch rest ;;"),
    ],
    ids=["waits", "does not wait"],
)
def test_the_last_target_can_wait_for_programs_if_one_is_missing(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_missing: bool, script: str
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setattr(beside, "is_program_missing", lambda: is_missing)
    make(f"cd {tmp_path}; case $1 in {script} esac")
    assert beside.main(["build", "lab", "rest"]) == 0


@root
def test_a_signal_prints_what_the_last_target_printed_and_what_it_runs_and_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "make").write_text(
        f"#!/bin/sh\ncase $1 in lab) exec sleep 600 ;; rest) echo of rest; sleep 601 & touch {tmp_path}/began; wait ;; esac"
    )
    (tmp_path / "make").chmod(0o755)
    environment = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    command = [sys.executable, "-m", "tests.beside", "build", "lab", "rest"]
    with subprocess.Popen(command, env=environment, cwd=ROOT, stdout=subprocess.PIPE, text=True) as run:
        until((tmp_path / "began").exists)
        run.terminate()
        out, _ = run.communicate()
    assert run.returncode == 128 + signal.SIGTERM
    assert out.startswith("of rest\n")
    assert re.search(r" sleep 601$", out, re.MULTILINE)
    assert not [group for group in cgroups.hierarchies() if (group / f"beside-{run.pid}").exists()]


_HANGS = """
import faulthandler, signal, time
def waits_for_something_that_never_comes():
    print("of rest", flush=True)
    time.sleep(602)
faulthandler.register(signal.SIGUSR1)
waits_for_something_that_never_comes()
"""


_WAITS_FOR_LAST = f"{sys.executable} -P -c 'from tests import beside; beside.wait()'"


@root
@pytest.mark.parametrize("is_over", [True, False], ids=["the first is over", "the first waits for it"])
def test_a_last_target_that_hangs_fails_the_run_and_says_where(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], is_over: bool
) -> None:
    (tmp_path / "hangs.py").write_text(_HANGS)
    monkeypatch.setattr(beside, "HANGS_S", 2.0)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    first = f"lab) {'exit 0' if is_over else _WAITS_FOR_LAST} ;;"
    make(f"case $1 in {first} rest) exec {sys.executable} {tmp_path}/hangs.py ;; esac")
    with pytest.raises(SystemExit, match="1"):
        beside.main(["build", "lab", "rest"])
    out = capfd.readouterr().out
    assert out.startswith("what runs next to the lab hangs: no output for 2 s\nof rest\n")
    assert "in waits_for_something_that_never_comes" in out
    assert re.search(r"python \S+/hangs.py$", out, re.MULTILINE)
    assert not [group for group in cgroups.hierarchies() if (group / f"beside-{os.getpid()}").exists()]


@root
def test_a_failed_build_ends_everything(make: Make, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    make(f"echo of $1; case $1 in build) sleep 0.5; exit 3 ;; rest) sleep 60; touch {tmp_path}/went-on ;; esac")
    assert beside.main(["build", "lab", "rest"]) == 3
    assert capfd.readouterr().out == "of build\n"
    assert not (tmp_path / "went-on").exists()
    assert not [*cgroups.members(f"beside-{os.getpid()}")]
