"""The files that machines download, as text and with the programs that read them."""

from __future__ import annotations

import http.server
import os
import re
import shutil
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cluster.errors import RefusedError
from operations.machines import stale
from operations.provisioning.machines import machines, normal_mac
from operations.provisioning.render import tree, write
from operations.provisioning.reports import Reports, listening
from tests.ports import free_port
from tests.provisioning.support import KEYS, cluster, local_cluster

GOLDEN = Path(__file__).parents[1] / "golden" / "provisioning"
FIRST = "machines/b8-59-9f-10-00-01"
MIB = 1 << 20
ODD = 32 * MIB + 600 * 512
"""Disks end in the middle of a MiB."""
NVME = "nvme-Micron_7450_MTFDKBG960TFR_2238"


def files(wipe_until: dict[str, int] | None = None, **replaced: str) -> dict[str, str]:
    return tree(machines(cluster(**replaced)), wipe_until)


def test_the_files_are_the_ones_kept() -> None:
    """MENAGERIE_UPDATE_GOLDEN=1 rewrites them; review the diff."""
    made = {name: text for name, text in files().items() if "-00-0" not in name or name.startswith(FIRST)}
    if os.environ.get("MENAGERIE_UPDATE_GOLDEN"):
        shutil.rmtree(GOLDEN, ignore_errors=True)
        write(made, GOLDEN)
    kept = {str(path.relative_to(GOLDEN)): path.read_text() for path in GOLDEN.rglob("*") if path.is_file()}
    assert kept == made


def test_every_machine_has_its_files_and_no_other_machine_is_in_them() -> None:
    made = files()
    all_ = machines(cluster())
    assert len(made) == 3 + 4 * len(all_)
    for machine in all_:
        own = "".join(text for name, text in made.items() if machine.hyphened in name)
        assert str(machine.address) in own
        for other in all_:
            assert other is machine or (other.name not in own and str(other.address) not in own)


def test_files_of_a_removed_machine_are_deleted_and_files_added_by_hand_stay(tmp_path: Path) -> None:
    (tmp_path / "installer").mkdir()
    (tmp_path / "installer" / "linux").write_text("kernel")
    assert write(files(), tmp_path) == 15
    assert write(files(), tmp_path) == 0
    assert write(tree(machines(cluster(), ["r1"])), tmp_path) == 4 + 1  # its four files, and dnsmasq.conf
    assert not (tmp_path / "machines" / "b8-59-9f-10-00-03.ipxe").exists()
    assert (tmp_path / "installer" / "linux").exists()


@pytest.mark.parametrize("mac", ["B8-59-9F-10-00-03", "b859.9f10.0003", "b8:59:9f:10:00:03", "b8599f100003"])
def test_a_mac_is_recognised_in_every_notation(mac: str) -> None:
    assert normal_mac(mac) == "b8:59:9f:10:00:03"


def test_a_limit_selects_names_racks_or_sites_and_must_match() -> None:
    def chosen(*limit: str) -> list[str]:
        return [machine.name for machine in machines(cluster(), limit)]

    assert chosen("r1") == ["lynx-gpu-1", "lynx-gpu-2"]
    assert chosen("*-3", "lynx-gpu-1") == ["lynx-gpu-1", "lynx-gpu-3"]
    assert chosen("sjc1") == chosen() == ["lynx-gpu-1", "lynx-gpu-2", "lynx-gpu-3"]
    with pytest.raises(RefusedError, match=r"--limit lynx-gpu-33 matches no machine of lynx; did you mean"):
        machines(cluster(), ["lynx-gpu-33"])


def test_debconf_accepts_the_answers_of_the_installer() -> None:
    """Run it under a lock: while another process has debconf's database, it exits with 1 silently."""
    program = shutil.which("debconf-set-selections")
    if program is None:
        pytest.skip("debconf-set-selections is not installed; Debian has it")
    for made in (files(), files(bmc="null", reports="null")):
        text = made[f"{FIRST}/preseed.cfg"]
        done = subprocess.run([program, "--checkonly"], input=text, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")
    broken = subprocess.run([program, "--checkonly"], input="d-i a/b\n", capture_output=True, text=True, check=False)
    assert broken.returncode != 0


def test_dnsmasq_accepts_its_configuration(tmp_path: Path) -> None:
    program = shutil.which("dnsmasq")
    if program is None:
        pytest.skip("dnsmasq is not installed")
    path = tmp_path / "dnsmasq.conf"
    path.write_text(files()["dnsmasq.conf"])
    done = subprocess.run([program, "--test", "-C", path], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", ["disk.sh", "late.sh"])
@pytest.mark.parametrize("shell", ["dash", "busybox"])
def test_a_shell_reads_the_scripts(name: str, shell: str) -> None:
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"{shell} is not installed")
    command = [program, "sh"] if shell == "busybox" else [program]
    text = files()[f"{FIRST}/{name}"]
    done = subprocess.run([*command, "-n"], input=text, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


# Commands from ipxe.org/cmd that these scripts need. ipxe.org/scripting: # starts a comment, : a label; || and && join.
COMMANDS = {"boot", "chain", "echo", "exit", "goto", "ifconf", "initrd", "kernel", "reboot", "set", "sleep"}


@pytest.mark.parametrize("name", ["boot.ipxe", "menagerie.ipxe", f"{FIRST}.ipxe"])
def test_ipxe_scripts_follow_its_grammar(name: str) -> None:
    first, *lines = files()[name].splitlines()
    assert first == "#!ipxe"
    labels = {line[1:] for line in lines if line.startswith(":")}
    for line in (line for line in lines if not line.startswith((":", "#"))):
        for part in re.split(r"\|\||&&", line):
            command, *words = part.split()
            assert command in COMMANDS
            assert command != "goto" or words[0] in labels
        known = {"mac:hexhyp", "installer"}
        assert set(re.findall(r"\$\{([^}]*)\}", line)) <= known


def test_the_kernel_accepts_its_command_line() -> None:
    """Debian's installation guide: at most 32 options and 32 environment variables, else the kernel panics. x86 reads
    2048 bytes."""
    line = next(line for line in files()[f"{FIRST}.ipxe"].splitlines() if line.startswith("kernel"))
    options = re.findall(r'(?:[^\s"]|"[^"]*")+', line)[2:]
    assert len(options) < 32
    assert len(line) < 2048
    assert 'netcfg/get_nameservers="10.9.255.1"' in options


class Disks:
    """A tree of /sys and /dev with files as disks, and a busybox to work on it."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "root"
        self.programs = folder / "bin"
        self.answers = folder / "answers"
        for path in ("dev/disk/by-id", "sys/block"):
            (self.root / path).mkdir(parents=True)
        self.programs.mkdir()
        busybox = shutil.which("busybox")
        assert busybox
        for applet in ("basename", "cat", "date", "dd", "echo", "head", "readlink", "sh", "tr", "wc"):
            (self.programs / applet).symlink_to(busybox)
        (self.programs / "debconf-set").write_text(f'#!/bin/sh\necho "$@" >> {self.answers}\n')
        (self.programs / "wget").write_text(f'#!/bin/sh\necho "$4" >> {self.answers}\n')
        for script in ("debconf-set", "wget"):
            (self.programs / script).chmod(0o755)

    def add(self, name: str, by_id: str, size: int = ODD, at: int | None = None) -> Path:
        """Create a disk with data at an offset, or an empty one."""
        device = self.root / "dev" / name
        with device.open("wb") as file:
            file.truncate(size)
            if at is not None:
                file.seek(at % size)
                file.write(b"LABELONE")
        block = self.root / "sys" / "block" / name
        block.mkdir()
        for key, value in {"removable": 0, "ro": 0, "size": size // 512}.items():
            (block / key).write_text(f"{value}\n")
        (self.root / "dev" / "disk" / "by-id" / by_id).symlink_to(device)
        return device

    def placed(self, script: str) -> str:
        """Call substitutes by path: a busybox may prefer its own wget to the one in PATH."""
        return re.sub(r"(?<![\w/.-])(wget|debconf-set)(?= )", rf"{self.programs}/\1", script)

    def choose(self, script: str) -> tuple[int, list[str]]:
        path = self.root / "disk.sh"
        path.write_text(self.placed(script))
        environment = {"PATH": str(self.programs), "MENAGERIE_ROOT": str(self.root)}
        done = subprocess.run(
            [self.programs / "sh", path], env=environment, capture_output=True, text=True, check=False
        )
        assert done.stderr == ""
        return done.returncode, self.answers.read_text().splitlines() if self.answers.exists() else []


@pytest.fixture
def disks(tmp_path: Path) -> Disks:
    if shutil.which("busybox") is None:
        pytest.skip("busybox is not installed")
    return Disks(tmp_path)


def test_the_installer_runs_only_what_it_got_from_ipxe_and_nothing_it_downloads_itself(disks: Disks) -> None:
    """The attack: someone on the machines' network acts as the server and changes a script. The installer itself can't
    verify a server, and it runs the responses as root."""
    made = files(**RULE)
    disks.add("nvme0n1", NVME)
    owned = disks.root / "owned"
    wget = disks.programs / "wget"
    wget.write_text(f'#!/bin/sh\nwhile [ "$1" != -O ]; do shift; done\necho "echo >> {owned}" > "$2"\n')
    for script in ("disk.sh", "late.sh"):
        (disks.root / script).write_text(disks.placed(made[f"{FIRST}/{script}"]) if script == "disk.sh" else "exit 0\n")
    for name in ("partman/early_command", "preseed/late_command"):
        (line,) = re.findall(rf"^d-i {name} string (.*)$", made[f"{FIRST}/preseed.cfg"], re.MULTILINE)
        command = re.sub(r"(?<=\s)(/tmp)?/(?=\w+\.sh)", f"{disks.root}/", line).replace("while :", "while false")
        environment = {"PATH": str(disks.programs), "MENAGERIE_ROOT": str(disks.root)}
        done = subprocess.run(
            [disks.programs / "sh", "-c", disks.placed(command)],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, "")
    assert not owned.exists()
    assert disks.answers.read_text().startswith("partman-auto/disk /dev/nvme0n1")


VERIFIED = {"server": "https://10.9.255.5/menagerie", "first_stage": "secure-boot"}


def test_a_verified_installation_downloads_all_our_files_with_ipxe_over_tls() -> None:
    """Only Debian's files, which are signed, and reports, which are not executed, are transferred in clear."""
    made = files(**VERIFIED)
    fetched = {"installer": set[str](), "script": set[str]()}
    for name in ("menagerie.ipxe", "boot.ipxe", f"{FIRST}.ipxe"):
        for line in made[name].splitlines():
            words = line.split()
            if words and words[0] in ("chain", "initrd", "kernel"):
                url = next(word for word in words[1:] if "/" in word)
                fetched["installer" if "${installer}" in url else "script"].add(url)
    assert all(url.startswith("https://10.9.255.5/menagerie/") for url in fetched["script"])
    assert f"set installer {VERIFIED['server']}/installer/trixie" in made[f"{FIRST}.ipxe"]
    own = {url.rpartition("/")[2] for url in fetched["script"]}
    assert {"preseed.cfg", "disk.sh", "late.sh", "boot.ipxe"} <= own
    others = [text for name, text in made.items() if name.startswith(f"{FIRST}/")]
    in_clear = {url for text in others for url in re.findall(r"http://[^\s\"/]+", text)}
    assert in_clear == {"http://10.9.255.5:8642"}
    assert "d-i mirror/protocol string http\n" in made[f"{FIRST}/preseed.cfg"]


RULE = {"disk": '{by_id: "nvme-Micron_7450*", max_size: 64MiB}'}


def test_the_only_matching_empty_disk_is_used(disks: Disks) -> None:
    disks.add("nvme0n1", NVME)
    disks.add("nvme1n1", "nvme-Micron_7450_too_large", size=65 * MIB)
    disks.add("nvme2n1", "nvme-SAMSUNG_MZ", at=0)
    code, lines = disks.choose(files(**RULE)[f"{FIRST}/disk.sh"])
    assert (code, lines) == (0, ["partman-auto/disk /dev/nvme0n1", "grub-installer/bootdev /dev/nvme0n1"])


@pytest.mark.parametrize("at", [0, 512, 4 * MIB - 8, -4 * MIB, -MIB, -8])
def test_a_disk_with_data_is_not_changed(disks: Disks, at: int) -> None:
    device = disks.add("nvme0n1", NVME, at=at)
    before = device.read_bytes()
    code, lines = disks.choose(files(**RULE)[f"{FIRST}/disk.sh"])
    assert (code, lines) == (1, ["http://10.9.255.5:8642/refused/b8-59-9f-10-00-01/holds-something"])
    assert device.read_bytes() == before


def test_a_disk_with_a_partition_is_not_changed(disks: Disks) -> None:
    disks.add("nvme0n1", NVME)
    partition = disks.root / "sys/block/nvme0n1/nvme0n1p1"
    partition.mkdir()
    (partition / "partition").write_text("1\n")
    assert disks.choose(files(**RULE)[f"{FIRST}/disk.sh"])[0] == 1


def test_a_disk_that_can_not_be_read_completely_does_not_count_as_empty(disks: Disks) -> None:
    device = disks.add("nvme0n1", NVME)
    with device.open("r+b") as file:
        file.truncate(ODD - 512)
    assert disks.choose(files(**RULE)[f"{FIRST}/disk.sh"])[0] == 1


@pytest.mark.parametrize(("hours", "code"), [(1, 0), (-1, 1)])
@pytest.mark.parametrize("at", [0, -8])
def test_a_consent_allows_overwriting_until_it_expires(disks: Disks, hours: int, code: int, at: int) -> None:
    device = disks.add("nvme0n1", NVME, at=at)
    until = {"lynx-gpu-1": int(time.time()) + hours * 3600}
    assert disks.choose(files(until, **RULE)[f"{FIRST}/disk.sh"])[0] == code
    assert (b"LABELONE" in device.read_bytes()) == (code == 1)
    assert device.stat().st_size == ODD


def test_a_consent_for_one_machine_does_not_apply_to_another(disks: Disks) -> None:
    disks.add("nvme0n1", NVME, at=0)
    until = {"lynx-gpu-2": int(time.time()) + 3600}
    assert disks.choose(files(until, **RULE)[f"{FIRST}/disk.sh"])[0] == 1


@pytest.mark.parametrize(("names", "reason"), [((), "no-disk"), ((NVME, f"{NVME}9"), "several-disks")])
def test_no_disk_and_two_disks_are_refused(disks: Disks, names: tuple[str, ...], reason: str) -> None:
    for number, name in enumerate(names):
        disks.add(f"nvme{number}n1", name)
    code, lines = disks.choose(files(**RULE)[f"{FIRST}/disk.sh"])
    assert (code, lines) == (1, [f"http://10.9.255.5:8642/refused/b8-59-9f-10-00-01/{reason}"])


@pytest.fixture
def late(tmp_path: Path) -> Callable[[str], Path]:
    """Run a late.sh on a folder instead of /target, and return the folder. in-target runs its arguments here."""
    target = tmp_path / "target"
    for folder in ("etc", "etc/sudoers.d", "home/ops", "root"):
        (target / folder).mkdir(parents=True, exist_ok=True)
    (target / "etc/ssh").mkdir()
    (target / "etc/network").mkdir()
    (target / "etc/ssh/ssh_host_ed25519_key.pub").write_text(f"{KEYS[0]} root@lynx-gpu-1\n")
    programs = tmp_path / "bin"
    programs.mkdir()
    script = programs / "in-target"
    script.write_text(
        "#!/bin/sh\n"
        f'case $1 in python3) shift 2; exec python3 -c "$(echo "$1" | sed "s|/etc/ssh|{target}/etc/ssh|")" ;; esac\n'
    )
    script.chmod(0o755)

    def run(text: str) -> Path:
        path = tmp_path / "late.sh"
        path.write_text(text)
        environment = {"PATH": f"{programs}:{os.environ['PATH']}", "MENAGERIE_TARGET": str(target)}
        done = subprocess.run(
            ["sh", path], env=environment | {"MENAGERIE_PAUSE": "0"}, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return target

    return run


def test_the_installed_machine_has_its_address_accepts_operators_and_has_reported_its_key(
    late: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    port = free_port()
    one = machines(local_cluster(1, reports=f"http://127.0.0.1:{port}"))[0]
    reports = Reports()
    reports.expect(one)
    monkeypatch.setattr(
        Reports, "_sender_of", lambda self, hyphened, _: self.expected.get(hyphened)
    )  # we are 127.0.0.1
    with listening(f"http://127.0.0.1:{port}", reports):
        target = late(tree([one])[f"machines/{one.hyphened}/late.sh"])
    assert reports.keys == {"lynx-gpu-1": KEYS[0]}
    network = (target / "etc/systemd/network/10-menagerie.network").read_text()
    assert "PermanentMACAddress=b8:59:9f:10:00:01\n" in network
    assert "Address=127.9.1.11/24\nGateway=127.9.1.1\n" in network
    assert "MTUBytes=9000\n" in network
    clock = (target / "etc/chrony/chrony.conf").read_text()
    assert clock.startswith("server 10.9.255.1 iburst\nserver time.example.org iburst\n")
    keys = target / "root/.ssh/authorized_keys"
    assert keys.read_text().startswith("ssh-ed25519 ")
    assert keys.stat().st_mode & 0o777 == 0o600
    assert "PasswordAuthentication no" in (target / "etc/ssh/sshd_config.d/10-menagerie.conf").read_text()


def test_an_unreceived_report_is_sent_again(late: Callable[[str], Path]) -> None:
    heard: list[str] = []

    class Twice(http.server.BaseHTTPRequestHandler):
        def do_PUT(self) -> None:
            heard.append(self.rfile.read(int(self.headers["Content-Length"])).decode())
            self.send_response(204 if len(heard) > 2 else 503)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Twice) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        one = machines(cluster(reports=f"http://127.0.0.1:{server.server_port}"))[0]
        late(tree([one])[f"machines/{one.hyphened}/late.sh"])
        server.shutdown()
    assert heard == [f"{KEYS[0]} root@lynx-gpu-1\n"] * 3


def test_served_files_are_compared_with_the_spec_except_for_the_consent(tmp_path: Path) -> None:
    class Quiet(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *args: Any) -> None:
            super().__init__(*args, directory=str(tmp_path))

        def log_message(self, format: str, *args: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Quiet) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        all_ = machines(cluster(server=f"http://127.0.0.1:{server.server_port}"))
        assert stale(all_) == ([machine.name for machine in all_], [])
        write(tree(all_, {"lynx-gpu-2": 2**31}), tmp_path)
        assert stale(all_) == ([], [])
        preseed = tmp_path / "machines" / all_[2].hyphened / "preseed.cfg"
        preseed.write_text(preseed.read_text().replace("trixie", "buster"))
        assert stale(all_) == (["lynx-gpu-3"], [])
        server.shutdown()
    assert stale(all_) == ([], [all_[0].settings.server])


def test_a_site_with_its_own_security_archive_asks_nothing_of_the_internet(late: Callable[[str], Path]) -> None:
    """The installer would wait at a question about lists that it can't fetch, or that are older than a week."""
    made = files(security="http://10.9.255.5/debian-security", reports="null")
    assert "\nd-i apt-setup/services-select multiselect\n" in made[f"{FIRST}/preseed.cfg"]
    listed = (late(made[f"{FIRST}/late.sh"]) / "etc/apt/sources.list.d/menagerie-updates.sources").read_text()
    updates, security = listed.strip().split("\n\n")
    assert "Suites: trixie-updates\n" in updates
    assert "URIs: http://10.9.255.5/debian-security\nSuites: trixie-security\n" in security
    assert listed.count("Check-Valid-Until: no\n") == 2
    assert "services-select" not in files()[f"{FIRST}/preseed.cfg"]
