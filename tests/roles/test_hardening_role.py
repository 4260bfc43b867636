"""Role hardening under the real ansible-playbook, with the real sshd."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests import debian
from tests.roles.overlaid import ROOT, Host

CHECK = ROOT / "roles" / "hardening" / "files" / "menagerie_login_check.py"
DROP_IN = "/etc/ssh/sshd_config.d/10-menagerie.conf"
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOpLsfzSLjH8LV9gOIGvXWMQ0JSjHkBNWJ5AdTyTxDkT operator\n"
QUIET = {"hardening_sysctls": {}, "hardening_updates": False}
MAIN = "Include /etc/ssh/sshd_config.d/*.conf\nPasswordAuthentication yes\nAuthorizedKeysFile FOLDER/keys\n"


@pytest.fixture(scope="session")
def sshd(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the text of a script that runs the real sshd."""
    if os.geteuid() != 0:
        pytest.skip("only root may mount")
    try:
        return debian.sshd(tmp_path_factory.mktemp("sshd")).read_text()
    except debian.Unavailable as reason:
        pytest.skip(f"no OpenSSH server: {reason}")


@pytest.fixture
def host(tmp_path: Path, sshd: str) -> Host:
    host_ = Host(
        tmp_path, "role: hardening, when: hardening_enabled", ("/etc", "/usr/local/libexec", "/usr/local/sbin")
    )
    host_.command("sshd", sshd)
    ssh = host_.layer("upper", "/etc") / "ssh"
    (ssh / "sshd_config.d").mkdir(parents=True)
    (ssh / "sshd_config").write_text(MAIN.replace("FOLDER", str(tmp_path)))
    (tmp_path / "keys").write_text("# nobody's\n" + KEY)
    users = Path("/etc/passwd").read_text()
    if "\nsshd:" not in users:
        (ssh.parent / "passwd").write_text(users + "sshd:x:105:65534::/run/sshd:/usr/sbin/nologin\n")
    key = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(ssh / "ssh_host_ed25519_key")]
    subprocess.run(key, check=True)
    return host_


# sshd needs a folder in /run, which all hosts on this kernel share.
READY = "mount -t tmpfs x /run && mkdir /run/sshd"


def test_everything_is_placed_once_and_a_dry_run_reports_drift_without_repairing_it(host: Host) -> None:
    first = host.play("--check", before=READY, **QUIET)
    before = set(host.files())
    assert (first.code, first.changed) == (0, 1), first.out
    assert DROP_IN not in before
    second = host.play(before=READY, **QUIET)
    assert (second.code, second.changed) == (0, 1), second.out
    files = host.files()
    assert set(files) - before == {
        DROP_IN,
        "/etc/systemd/journald.conf.d/50-menagerie.conf",
        "/etc/security/limits.d/50-menagerie.conf",
        "/etc/sysctl.d/60-menagerie-hardening.conf",
        "/etc/systemd/system/menagerie-governor.service",
        "/usr/local/libexec/menagerie-governor",
        "/usr/local/libexec/menagerie-login-check",
        "/usr/local/sbin/menagerie-host-report",
    }
    assert "PasswordAuthentication no\n" in files[DROP_IN]
    assert {"start ssh.service", "start menagerie-governor.service"} <= set(host.systemctl_calls())
    third = host.play(before=READY, **QUIET)
    assert (third.code, third.changed) == (0, 0), third.out
    drifted = host.layer("upper", "/etc") / "ssh" / "sshd_config.d" / "10-menagerie.conf"
    drifted.write_text("PasswordAuthentication yes\n")
    calls = len(host.systemctl_calls())
    fourth = host.play("--check", "--diff", before=READY, **QUIET)
    assert (fourth.changed, drifted.read_text()) == (1, "PasswordAuthentication yes\n"), fourth.out
    assert "-PasswordAuthentication yes" in fourth.out
    assert len(host.systemctl_calls()) == calls


def test_an_operator_without_a_key_keeps_the_password(host: Host) -> None:
    (host.folder / "keys").write_text(f"# {KEY}")
    ran = host.play(before=READY, **QUIET)
    assert ran.code != 0
    assert f"root has no public key in {host.folder}/keys" in ran.out
    assert DROP_IN not in host.files()
    assert "restart ssh.service" not in host.systemctl_calls()
    assert host.play(before=READY, **QUIET, hardening_ssh=False).code == 0


def test_a_configuration_that_sshd_rejects_is_not_placed(host: Host) -> None:
    drop_in = host.layer("upper", "/etc") / "ssh" / "sshd_config.d" / "50-own.conf"
    drop_in.write_text("NoSuchKeyword yes\n")
    ran = host.play(before=READY, **QUIET)
    assert ran.code != 0
    assert "sshd refuses it" in ran.out
    assert "NoSuchKeyword" in ran.out
    assert DROP_IN not in host.files()


def test_the_real_sshd_ends_up_with_keys_only_and_few_ciphers(host: Host) -> None:
    dump = host.folder / "dump"
    ran = host.play(before=READY, after=f"sshd -T -f /etc/ssh/sshd_config > {dump}", **QUIET)
    assert ran.code == 0, ran.out
    settings = dict(line.split(" ", 1) for line in dump.read_text().splitlines() if " " in line)
    assert (settings["passwordauthentication"], settings["kbdinteractiveauthentication"]) == ("no", "no")
    assert settings["permitrootlogin"] in ("prohibit-password", "without-password")
    assert "cbc" not in settings["ciphers"]
    assert "sha1" not in settings["kexalgorithms"] + settings["macs"]


# The host's view of /proc/sys/net, as on a kernel that was started with ipv6.disable=1. IPv4 settings are those of the
# host's network namespace.
WITHOUT_IPV6 = (
    "mount -t tmpfs x /mnt && mkdir -p /mnt/net/ipv4 && mount --bind /proc/sys/net/ipv4 /mnt/net/ipv4"
    " && mount --rbind /mnt/net /proc/sys/net"
)
SYSCTLS = {"net.ipv4.conf.all.rp_filter": 2, "net.ipv6.conf.all.accept_redirects": 0}


@pytest.fixture
def overlaid(tmp_path: Path) -> Host:
    if os.geteuid() != 0:
        pytest.skip("only root may mount")
    host_ = Host(
        tmp_path, "role: hardening, when: hardening_enabled", ("/etc", "/usr/local/libexec", "/usr/local/sbin")
    )
    host_.command("sshd", "#!/bin/sh\n")
    return host_


def test_a_host_without_ipv6_gets_the_other_settings_and_reports_what_was_left_out(overlaid: Host) -> None:
    path = "/etc/sysctl.d/60-menagerie-hardening.conf"
    variables = {"hardening_sysctls": SYSCTLS, "hardening_updates": False, "hardening_ssh": False}
    dry = overlaid.play("--check", before=WITHOUT_IPV6, **variables)
    assert (dry.code, dry.changed, path in overlaid.files()) == (0, 1, False), dry.out
    live = overlaid.folder / "live"
    after = f"cat /proc/sys/net/ipv4/conf/all/rp_filter > {live}"
    first = overlaid.play(before=WITHOUT_IPV6, after=after, **variables)
    assert (first.code, first.changed, live.read_text()) == (0, 1, "2\n"), first.out
    assert overlaid.files()[path] == "net.ipv4.conf.all.rp_filter = 2\n"
    output = " ".join(first.out.split())
    assert "left out, because this kernel lacks the whole group: net.ipv6.conf.all.accept_redirects" in output
    again = overlaid.play(before=f"{WITHOUT_IPV6} && echo 2 > /proc/sys/net/ipv4/conf/all/rp_filter", **variables)
    assert (again.code, again.changed) == (0, 0), again.out
    with_it = overlaid.play(**variables)
    assert (with_it.code, with_it.changed, "left out" in with_it.out) == (0, 1, False), with_it.out
    assert overlaid.files()[path] == "".join(f"{key} = {value}\n" for key, value in SYSCTLS.items())


def test_a_setting_of_an_existing_group_must_exist(overlaid: Host) -> None:
    ran = overlaid.play(hardening_sysctls={"net.ipv4.no_such": 1}, hardening_updates=False, hardening_ssh=False)
    assert ran.code != 0
    assert "this kernel has no setting net.ipv4.no_such" in ran.out


def test_updates_need_their_package_and_hold_the_driver_and_the_kernel(host: Host) -> None:
    missing = host.play(before=READY, hardening_sysctls={})
    if not shutil.which("unattended-upgrade"):
        assert "unattended-upgrade is missing: install unattended-upgrades" in missing.out
    host.command("unattended-upgrade", "#!/bin/sh\n")
    assert host.play(before=READY, hardening_sysctls={}).code == 0
    text = host.files()["/etc/apt/apt.conf.d/52menagerie-upgrades"]
    assert '  "linux-";\n' in text
    assert '  "nvidia-";\n' in text
    if shutil.which("apt-config"):
        path = host.folder / "apt"
        path.write_text(text)
        dump = subprocess.run(
            ["apt-config", "-c", str(path), "dump"], capture_output=True, text=True, check=True
        ).stdout
        assert 'Unattended-Upgrade::Package-Blacklist:: "linux-";' in dump
        assert 'Unattended-Upgrade::Automatic-Reboot "false";' in dump
        assert dump.count("Unattended-Upgrade::Origins-Pattern:: ") == 1


def test_every_governor_of_a_machine_is_set(host: Host, tmp_path: Path) -> None:
    ran = host.play(before=READY, **QUIET)
    assert ran.code == 0, ran.out
    cpus = [tmp_path / "cpu" / f"cpu{number}" / "cpufreq" for number in (0, 11)]
    for cpu in cpus:
        cpu.mkdir(parents=True)
        (cpu / "scaling_governor").write_text("powersave\n")
    (tmp_path / "cpu" / "cpu12").mkdir()
    script = host.files()["/usr/local/libexec/menagerie-governor"].replace(
        "/sys/devices/system/cpu", str(tmp_path / "cpu")
    )
    subprocess.run(["sh", "-c", script], check=True)
    assert [(cpu / "scaling_governor").read_text() for cpu in cpus] == ["performance\n"] * 2


def test_the_check_distinguishes_keys_from_comments(tmp_path: Path) -> None:
    sys.path.insert(0, str(CHECK.parent))
    try:
        import menagerie_login_check as check
    finally:
        sys.path.pop(0)
    for text, has in ((KEY, True), (f'from="10.0.0.0/8" {KEY}', True), (f"# {KEY}", False), ("", False)):
        (tmp_path / "keys").write_text(text)
        assert check.has_key(str(tmp_path / "keys")) is has, text
    assert not check.has_key(str(tmp_path / "none"))
