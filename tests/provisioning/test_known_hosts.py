"""known_hosts with new keys, read by ssh-keygen."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from operations.machines import trust_key
from operations.provisioning.known_hosts import parse_key, replaced
from operations.provisioning.machines import machines
from tests.provisioning.support import KEYS, cluster

HOST = "10.9.1.11"


def test_a_host_s_old_key_is_removed_and_everything_else_stays() -> None:
    text = (
        "# mine\n"
        f"{HOST} ssh-rsa old\n"
        f"other,{HOST} ssh-ed25519 shared\n"
        f"@cert-authority {HOST} ssh-ed25519 authority\n"
        "10.9.1.110 ssh-ed25519 longer\n"
        f"[{HOST}]:2222 ssh-ed25519 port\n"
    )
    assert replaced(text, {HOST: KEYS[0]}).splitlines() == [
        "# mine",
        "other ssh-ed25519 shared",
        f"@cert-authority {HOST} ssh-ed25519 authority",
        "10.9.1.110 ssh-ed25519 longer",
        f"[{HOST}]:2222 ssh-ed25519 port",
        f"{HOST} {KEYS[0]}",
    ]


def test_a_hashed_name_is_found_as_ssh_keygen_hashes_it(tmp_path: Path) -> None:
    program = shutil.which("ssh-keygen")
    if program is None:
        pytest.skip("ssh-keygen is not installed")
    path = tmp_path / "known_hosts"
    path.write_text(f"{HOST} {KEYS[1]}\n10.9.1.12 {KEYS[1]}\n")
    subprocess.run([program, "-H", "-f", path], check=True, capture_output=True)
    assert HOST not in path.read_text()
    path.write_text(replaced(path.read_text(), {HOST: KEYS[0]}))
    output = subprocess.run([program, "-F", HOST, "-f", path], check=True, capture_output=True, text=True).stdout
    assert [line for line in output.splitlines() if not line.startswith("#")] == [f"{HOST} {KEYS[0]}"]
    subprocess.run([program, "-F", "10.9.1.12", "-f", path], check=True, capture_output=True)


@pytest.mark.parametrize(
    "line",
    [
        "",
        "ssh-ed25519",
        "ssh-rsa " + KEYS[0].split()[1],
        "ssh-ed25519 AAAA",
        "ssh-ed25519 !!!!",
        KEYS[0][:-4],
        f"evil,{KEYS[0]}",
    ],
)
def test_an_invalid_host_key_is_none(line: str) -> None:
    assert parse_key(line) is None


def test_a_comment_is_left_out() -> None:
    assert parse_key(f"{KEYS[0]} root@x\n10.0.0.1 ssh-rsa AAAA") == KEYS[0]


def test_the_file_is_made_with_its_folder_and_a_link_to_it_stays(tmp_path: Path) -> None:
    one = machines(cluster())[0]
    path = tmp_path / "ssh" / "known_hosts"
    trust_key(path, one, KEYS[0])
    assert (path.read_text(), path.stat().st_mode & 0o777) == (f"{HOST} {KEYS[0]}\n", 0o600)
    link = tmp_path / "link"
    link.symlink_to(path)
    trust_key(link, one, KEYS[1])
    assert (path.read_text(), link.is_symlink()) == (f"{HOST} {KEYS[1]}\n", True)
