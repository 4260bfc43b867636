"""setup.sh and ./menagerie on machines that lack something, simulated by scripts on PATH."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tools import manifest

ROOT = manifest.TOOLS.parent
NEEDED = ("sh", "readlink", "sed", "sort", "tr", "grep", "sha256sum", "cmp", "mkdir", "flock", "cp", "cat", "env", "id")


class Machine:
    """A checkout with only the scripts, and a PATH with only the programs that the test adds."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "checkout"
        self.bin = folder / "bin"
        self.bin.mkdir()
        (self.root / "tools").mkdir(parents=True)
        for name in ("menagerie", "requirements.lock", "tools/setup.sh", "tools/uv-requirements.txt"):
            shutil.copy(ROOT / name, self.root / name)
        (self.root / "tools" / "debian-packages.txt").write_text("# a comment\ngcc\nbusybox | busybox-static\n")
        for name in NEEDED:
            (self.bin / name).symlink_to(str(shutil.which(name)))
        self.log = folder / "log"
        self.cache = folder / "cache"

    def program(self, name: str, script: str) -> None:
        path = self.bin / name
        path.unlink(missing_ok=True)
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    def packages(self, *installed: str) -> None:
        """Install exactly these Debian packages."""
        names = "|".join(installed) or "none"
        self.program(
            "dpkg-query", f'for name; do case $name in {names}) printf "%s=installed " $name ;; esac; done; exit 1'
        )

    def create_venv(self) -> None:
        """Create a .venv whose python prints its environment and arguments."""
        folder = self.root / ".venv" / "bin"
        folder.mkdir(parents=True)
        shutil.copy(self.root / "requirements.lock", self.root / ".venv")
        (folder / "python").write_text('#!/bin/sh\necho "$PWD|$PYTHONPATH|$PYTHONPYCACHEPREFIX|$@"\n')
        (folder / "python").chmod(0o755)

    def run(self, *command: str, cwd: Path | None = None, **variables: str) -> subprocess.CompletedProcess[str]:
        environment = {"PATH": str(self.bin), "HOME": "/nonexistent", "MENAGERIE_CACHE": str(self.cache), **variables}
        return subprocess.run(
            [str(self.root / command[0]), *command[1:]],
            check=False,
            env=environment,
            cwd=cwd,
            capture_output=True,
            text=True,
            timeout=30,
        )


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_a_machine_that_has_everything_is_left_alone(machine: Machine) -> None:
    machine.packages("gcc", "busybox-static")
    machine.create_venv()
    result = machine.run("tools/setup.sh")
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


def test_missing_packages_are_listed_for_a_user_who_is_not_root(machine: Machine) -> None:
    machine.packages("busybox")
    machine.program("id", "echo 1000")
    machine.program("apt-get", f"echo called >{machine.log}")
    result = machine.run("tools/setup.sh")
    assert result.returncode == 1
    assert "apt-get install --no-install-recommends gcc\n" in result.stderr
    assert not machine.log.exists()


def test_installed_services_do_not_start_at_the_next_boot_either(machine: Machine) -> None:
    machine.create_venv()
    machine.packages("busybox")
    machine.program("id", "echo 0")
    machine.program("apt-get", ":")
    files = ("/lib/systemd/system/a.service", "/lib/systemd/system/b@.service", "/etc/init.d/slapd", "/etc/init.d/x/y")
    machine.program("dpkg", f"printf '%s\\n' {' '.join(files)}")
    machine.program("systemctl", f'echo "$@" >{machine.log}')
    for name in ("rm", "chmod"):
        machine.program(name, ":")
    script = machine.root / "tools" / "setup.sh"
    script.write_text(script.read_text().replace("/usr/sbin/policy-rc.d", str(machine.log.parent / "policy")))
    result = machine.run("tools/setup.sh")
    assert (result.returncode, machine.log.read_text()) == (0, "--quiet disable a.service slapd.service\n"), (
        result.stderr
    )


def test_a_machine_without_debian_is_refused(machine: Machine) -> None:
    result = machine.run("tools/setup.sh")
    assert result.returncode == 1
    assert "this is not Debian" in result.stderr
    assert "debian-packages.txt" in result.stderr


def test_the_error_says_what_to_install_if_no_fitting_python_is_on_path(machine: Machine) -> None:
    machine.program("python3", "exit 1")
    script = machine.root / "tools" / "setup.sh"
    script.write_text(script.read_text().replace("/usr/bin/python3", "/nowhere/python3"))
    result = machine.run("tools/setup.sh", "env")
    assert result.returncode == 1
    assert "needs Python 3.11, 3.12 or 3.13" in result.stderr


def test_the_command_keeps_the_current_directory_and_its_arguments(machine: Machine, tmp_path: Path) -> None:
    machine.create_venv()
    result = machine.run("menagerie", "check", "a b", cwd=tmp_path)
    assert result.stdout == f"{tmp_path}|{machine.root}|{machine.cache}/pycache|-P -m cli check a b\n"


def test_the_command_works_through_a_link(machine: Machine, tmp_path: Path) -> None:
    machine.create_venv()
    link = tmp_path / "linked"
    link.symlink_to(machine.root / "menagerie")
    result = subprocess.run(
        [link], check=True, env={**os.environ, "MENAGERIE_CACHE": str(machine.cache)}, capture_output=True, text=True
    )
    assert "-m cli" in result.stdout


def test_a_stale_environment_is_updated_before_the_command_runs(machine: Machine) -> None:
    machine.create_venv()
    (machine.root / ".venv" / "requirements.lock").write_text("old")
    machine.program("sha256sum", "exit 3")
    result = machine.run("menagerie", "status")
    assert result.returncode != 0
    assert result.stdout == ""


@pytest.mark.parametrize(
    ("programs", "message"),
    [("", "about 20 minutes on 2 cores, once; 17 of them"), ("release", "pinned programs are downloaded")],
)
def test_setup_prints_how_long_it_takes_to_fill_an_empty_cache(machine: Machine, programs: str, message: str) -> None:
    (machine.bin / "awk").symlink_to(str(shutil.which("awk")))
    (machine.root / "tools" / "programs.toml").write_text(
        "[a]\nseconds = 600\n[b]\nseconds = 400\n[c]\nseconds = 90\nunasked = false\n"
    )
    assert message in machine.run("tools/setup.sh", "foretell", MENAGERIE_PROGRAMS=programs).stderr
    (machine.cache / "programs").mkdir(parents=True)
    assert machine.run("tools/setup.sh", "foretell").stderr == ""


def test_make_passes_on_the_origin_of_programs_and_the_mirror() -> None:
    command = ["make", "--eval", "show:; @env", "show", "PROGRAMS=release", "MIRROR=http://mirror.example"]
    variables = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.splitlines()
    assert {"MENAGERIE_PROGRAMS=release", "MENAGERIE_MIRROR=http://mirror.example"} <= set(variables)
