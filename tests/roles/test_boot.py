"""What role boot places on a host, on trees like Debian's and Ubuntu's.

There is no grub-mkconfig here. A script replaces update-grub: it reads what the real one reads, in the same order, and writes
entries like 10_linux of grub 2.06.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from cluster.kernel import Iommu, Kernel, command_line
from tests.roles import playing

FILE = Path(__file__).parents[2] / "roles" / "boot" / "files" / "menagerie_boot.py"
UPDATE_GRUB = """#!/bin/sh
set -e
cd {root}
echo ran >> update-grub.log
. ./etc/default/grub
for file in ./etc/default/grub.d/*.cfg; do [ ! -e "$file" ] || . "$file"; done
cat > boot/grub/grub.cfg <<END
### BEGIN /etc/grub.d/10_linux ###
menuentry 'Debian GNU/Linux' {{
\tlinux\t/vmlinuz-6.1.0-37-amd64 root=UUID=1 ro $GRUB_CMDLINE_LINUX $GRUB_CMDLINE_LINUX_DEFAULT
}}
submenu 'Advanced options' {{
\tmenuentry 'recovery mode' {{
\t\tlinux\t/vmlinuz-6.1.0-37-amd64 root=UUID=1 ro single $GRUB_CMDLINE_LINUX
\t}}
}}
### END /etc/grub.d/10_linux ###
### BEGIN /etc/grub.d/20_memtest86+ ###
\tlinux\t/memtest86+x64.bin
### END /etc/grub.d/20_memtest86+ ###
END
"""
KERNEL = Kernel(iommu=Iommu.PASSTHROUGH, acs_redirect=False, huge_pages_1gi=4, parameters=("pci=realloc",))
WORDS = list(command_line(KERNEL))


@pytest.fixture(scope="module")
def program() -> Any:
    spec = importlib.util.spec_from_file_location("menagerie_boot", FILE)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Host:
    """A tree with the program."""

    def __init__(self, program: Any, root: Path, *, grub: bool = True) -> None:
        self.program, self.root = program, root
        for folder in ("etc/default/grub.d", "etc/menagerie", "boot/grub", "proc", "run"):
            (root / folder).mkdir(parents=True)
        (root / "etc/default/grub").write_text('GRUB_CMDLINE_LINUX_DEFAULT="quiet"\n')
        # Like Ubuntu's cloud images: this file overwrites the variable.
        (root / "etc/default/grub.d/50-cloudimg-settings.cfg").write_text(
            'GRUB_CMDLINE_LINUX_DEFAULT="console=ttyS0"\n'
        )
        self.updater = root / "update-grub"
        self.updater.write_text(UPDATE_GRUB.format(root=root))
        self.updater.chmod(0o755)
        if grub:
            subprocess.run([self.updater], check=True)
            (root / "update-grub.log").unlink()
        self.boot()

    def configured(self, words: list[str], unsettable: str = "fail") -> Any:
        (self.root / "etc/menagerie/boot.json").write_text(json.dumps({"words": words, "unsettable": unsettable}))
        return self.machine()

    def machine(self) -> Any:
        return self.program.Machine(self.root, [str(self.updater)])

    def boot(self) -> None:
        """Boot the machine's first entry; /run is in memory."""
        entries = self.machine().entries()
        (self.root / "proc/cmdline").write_text(" ".join(entries[0] if entries else ["quiet"]) + "\n")
        for path in (self.root / "run").glob("reboot-required*"):
            path.unlink()

    def updates(self) -> int:
        log = self.root / "update-grub.log"
        return len(log.read_text().splitlines()) if log.exists() else 0


@pytest.fixture
def host(program: Any, tmp_path: Path) -> Host:
    return Host(program, tmp_path)


def test_words_get_into_every_entry_except_recovery_and_need_one_reboot(host: Host) -> None:
    machine = host.configured(WORDS)
    assert machine.apply(check=True) == [
        f"/etc/default/grub.d/95-menagerie.cfg: {' '.join(WORDS)}",
        "/boot/grub/grub.cfg",
    ]
    assert (host.updates(), list(host.root.glob("etc/default/grub.d/95*"))) == (0, [])
    assert machine.apply()[1:] == ["/boot/grub/grub.cfg"]
    grub = (host.root / "boot/grub/grub.cfg").read_text()
    assert "console=ttyS0 intel_iommu=on iommu=pt pci=disable_acs_redir=pci:0:0 hugepagesz=1G hugepages=4" in grub
    assert "single \n" in grub
    (reason,) = machine.reboot()
    assert reason.startswith("the kernel runs without intel_iommu=on iommu=pt")
    assert "menagerie.boot" not in reason
    assert (host.machine().apply(), host.updates()) == ([], 1)
    host.boot()
    assert host.machine().reboot() == []


def test_words_that_leave_the_spec_are_removed(host: Host) -> None:
    host.configured(WORDS).apply()
    host.boot()
    machine = host.configured([])
    assert machine.apply() == ["/etc/default/grub.d/95-menagerie.cfg: removed", "/boot/grub/grub.cfg"]
    assert machine.reboot() == ["the kernel runs with settings that were removed"]
    assert "iommu" not in (host.root / "boot/grub/grub.cfg").read_text()
    host.boot()
    assert (host.machine().reboot(), host.machine().apply(), host.updates()) == ([], [], 2)


def test_the_next_run_repairs_one_that_was_killed_between_the_file_and_grub(host: Host) -> None:
    machine = host.configured(WORDS)
    (host.root / host.program.DROP_IN).write_text(machine.drop_in)
    assert machine.apply() == ["/boot/grub/grub.cfg"]
    (host.root / host.program.DROP_IN).unlink()
    machine = host.configured([])
    assert machine.apply() == ["/boot/grub/grub.cfg"]
    assert (machine.apply(), host.updates()) == ([], 2)


def test_the_file_is_restored_if_update_grub_fails(host: Host) -> None:
    host.updater.write_text("#!/bin/sh\necho 'no space left'\nexit 1\n")
    with pytest.raises(host.program.Refused, match=r"as it was:\nno space left"):
        host.configured(WORDS).apply()
    assert not (host.root / host.program.DROP_IN).exists()


def test_a_later_file_that_drops_the_words_is_reported(host: Host) -> None:
    (host.root / "etc/default/grub.d/99-own.cfg").write_text('GRUB_CMDLINE_LINUX_DEFAULT="quiet"\n')
    with pytest.raises(
        host.program.Refused, match="lacks intel_iommu=on .*sets GRUB_CMDLINE_LINUX_DEFAULT after this one"
    ):
        host.configured(WORDS).apply()


def test_a_host_without_grub_is_refused_or_only_reported(program: Any, tmp_path: Path) -> None:
    host = Host(program, tmp_path, grub=False)
    assert host.configured([]).apply() == []
    with pytest.raises(
        program.Refused, match=r"no GRUB .*intel_iommu=on.*/etc/kernel/cmdline .*boot_unsettable: report"
    ):
        host.configured(WORDS).apply()
    machine = host.configured(WORDS, "report")
    assert (machine.apply(), machine.reboot()) == ([], [])
    assert machine.notes() == [f"the kernel runs without {' '.join(WORDS[:-1])}; set them in this host's boot loader"]
    assert list(tmp_path.glob("etc/default/grub.d/95*")) == []


def test_packages_and_other_roles_can_request_a_reboot_too(host: Host) -> None:
    (host.root / "run/reboot-required").touch()
    (host.root / "run/reboot-required.pkgs").write_text("linux-image-6.1.0-37-amd64\nlibc6\nlibc6\n")
    (host.root / "run/menagerie/reboot-required.d").mkdir(parents=True)
    (host.root / "run/menagerie/reboot-required.d/links").write_text("ens1f0 must be renamed to node0\nmore\n")
    assert host.machine().reboot() == [
        "installed packages ask for a reboot: libc6, linux-image-6.1.0-37-amd64",
        "ens1f0 must be renamed to node0",
    ]


def test_huge_pages_that_the_kernel_could_not_reserve_are_reported_after_the_boot(host: Host) -> None:
    machine = host.configured(WORDS)
    machine.apply()
    assert machine.notes() == []
    host.boot()
    pages = host.root / "sys/kernel/mm/hugepages/hugepages-1048576kB"
    pages.mkdir(parents=True)
    (pages / "nr_hugepages").write_text("3\n")
    assert host.machine().notes() == ["the kernel reserved 3 of 4 pages of 1G: memory was fragmented, or too small"]
    (pages / "nr_hugepages").write_text("4\n")
    assert host.machine().notes() == []


def test_the_program_reports_how_this_machine_was_booted() -> None:
    done = subprocess.run([sys.executable, FILE, "status", "--json"], check=True, capture_output=True, text=True)
    status = json.loads(done.stdout)
    assert status["boot_id"] == Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    assert status["booted"] == Path("/proc/cmdline").read_text().split()
    assert {"reboot", "notes", "machine"} <= set(status)
    assert 0 < status["booted_at"] < time.time()


PLAY = "- hosts: localhost\n  connection: local\n  gather_facts: false\n  roles: [boot]\n"


def play(folder: Path, *words: str, **variables: Any) -> subprocess.CompletedProcess[str]:
    """Run the role under the real ansible-playbook, in a mount namespace with overlays on /etc, /usr/local and /boot."""
    root = Path(__file__).parents[2]
    (folder / "play.yml").write_text(PLAY)
    mounts = []
    for name in ("/etc", "/usr/local", "/boot"):
        layers = [folder / part / name[1:].replace("/", "-") for part in ("upper", "work")]
        for layer in layers:
            layer.mkdir(parents=True, exist_ok=True)
        mounts.append(f"mount -t overlay x -o lowerdir={name},upperdir={layers[0]},workdir={layers[1]} {name}")
    arguments = ["-i", "localhost,", "-e", json.dumps(variables), *words, str(folder / "play.yml")]
    command = " && ".join([*mounts, "echo mounted", 'exec "$@"'])
    environment = {
        **os.environ,
        "PATH": f"{folder / 'bin'}:{os.environ['PATH']}",
        "ANSIBLE_ROLES_PATH": str(root / "roles"),
        "ANSIBLE_LIBRARY": str(root / "roles" / "modules"),
        "ANSIBLE_MODULE_UTILS": str(root / "roles" / "module_utils"),
        "ANSIBLE_LOOKUP_PLUGINS": str(root / "roles" / "lookups"),
        "ANSIBLE_PYTHON_INTERPRETER": sys.executable,
        "LC_ALL": "C.UTF-8",
    }
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", command, "sh", *playing.words(environment), *arguments],
        cwd=folder, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if not done.stdout.startswith("mounted"):
        pytest.skip(f"no private mounts here: {done.stderr.strip()}")
    return done


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may cover folders")
def test_the_role_changes_once_and_a_dry_run_changes_nothing(tmp_path: Path) -> None:
    """Uses a GRUB in an overlay on this machine's /boot."""
    updater = tmp_path / "bin" / "update-grub"
    updater.parent.mkdir()
    updater.write_text(UPDATE_GRUB.format(root="/").replace("echo ran >> update-grub.log\n", ""))
    updater.chmod(0o755)
    (tmp_path / "upper/boot/grub").mkdir(parents=True)
    (tmp_path / "upper/boot/grub/grub.cfg").touch()
    (tmp_path / "upper/etc/default").mkdir(parents=True)
    (tmp_path / "upper/etc/default/grub").write_text('GRUB_CMDLINE_LINUX_DEFAULT="quiet"\n')
    drop_in = tmp_path / "upper/etc/default/grub.d/95-menagerie.cfg"
    looked = play(tmp_path, "--check", boot_words=WORDS)
    assert (looked.returncode, drop_in.exists()) == (0, False), looked.stdout
    first = play(tmp_path, boot_words=WORDS)
    assert "changed=2" in first.stdout, first.stdout
    assert "the kernel runs without" in first.stdout
    assert drop_in.exists()
    second = play(tmp_path, boot_words=WORDS)
    assert "changed=0" in second.stdout, second.stdout
    taken = play(tmp_path, "--check", boot_words=[])
    assert ("changed=2" in taken.stdout or "changed=1" in taken.stdout, drop_in.exists()) == (True, True), taken.stdout
    gone = play(tmp_path, boot_words=[])
    assert ("changed=2" in gone.stdout, drop_in.exists()) == (True, False), gone.stdout
