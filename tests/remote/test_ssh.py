"""Programs over the real ssh to a real sshd, with keys that a provider knows."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from clients.remote.executor import UNREACHABLE, Ssh
from cluster.pools import Host
from cluster.spec import Cluster
from inventories.build import known_hosts
from tests import debian

# sshd needs its own user and folder, which this machine may lack.
_RUN = """set -e
mount -t tmpfs x /run && mkdir /run/sshd
cp /etc/passwd {folder}/passwd && echo 'sshd:x:105:65534::/run/sshd:/usr/sbin/nologin' >> {folder}/passwd
mount --bind {folder}/passwd /etc/passwd
exec {sshd} -D -e -f {folder}/sshd_config
"""


def _key(path: Path) -> str:
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", path], check=True)
    return " ".join(path.with_suffix(".pub").read_text().split()[:2])


@pytest.fixture
def port(tmp_path: Path) -> Iterator[int]:
    """Run an sshd on loopback that accepts root with the key `client`."""
    if os.geteuid() != 0:
        pytest.skip("only root may start an sshd for root")
    with socket.create_server(("127.0.0.1", 0)) as end:
        port = int(end.getsockname()[1])
    (tmp_path / "host.pub.txt").write_text(_key(tmp_path / "host"))
    (tmp_path / "keys").write_text(_key(tmp_path / "client") + "\n")
    lines = [
        f"ListenAddress 127.0.0.1:{port}",
        f"HostKey {tmp_path / 'host'}",
        f"AuthorizedKeysFile {tmp_path / 'keys'}",
    ]
    lines += ["PermitRootLogin prohibit-password", "StrictModes no", "UsePAM no", "PidFile none"]
    (tmp_path / "sshd_config").write_text("\n".join(lines) + "\n")
    try:
        script = _RUN.format(folder=tmp_path, sshd=debian.sshd(tmp_path))
    except debian.Unavailable as reason:
        pytest.skip(f"no sshd: {reason}")
    with subprocess.Popen(["unshare", "--mount", "sh", "-c", script], stderr=subprocess.PIPE) as process:
        try:
            for _ in range(100):
                if process.poll() is not None:
                    pytest.skip(f"no sshd of its own here: {process.stderr.read() if process.stderr else ''!r}")
                with socket.socket() as tried:
                    if tried.connect_ex(("127.0.0.1", port)) == 0:
                        break
                time.sleep(0.1)
            yield port
        finally:
            process.terminate()


@pytest.fixture
def cluster(build: Callable[..., Cluster], port: int) -> Cluster:
    host = Host.model_validate({"name": "worker-1", "rack": "r1", "address": "127.0.0.1"})
    return build({"sites": {"onprem": {"ssh": {"user": "root", "port": port}}}}, {"workers": (host,)})


def test_a_host_is_reached_with_the_keys_that_a_provider_knows(cluster: Cluster, tmp_path: Path) -> None:
    keys = known_hosts(cluster, {"worker-1": (tmp_path / "host.pub.txt").read_text()})
    with Ssh(cluster, keys, tmp_path / "client") as executor:
        done = executor.start("worker-1", ["echo", "it's here"]).wait(30)
        assert (done.code, done.text) == (0, "it's here\n"), done
        assert executor.start("worker-1", ["sh", "-c", "exit 7"]).wait(30).code == 7


def test_a_host_with_another_key_is_not_trusted(cluster: Cluster, tmp_path: Path) -> None:
    keys = known_hosts(cluster, {"worker-1": _key(tmp_path / "stranger")})
    with Ssh(cluster, keys, tmp_path / "client") as executor:
        done = executor.start("worker-1", ["true"]).wait(30)
    assert done.code == UNREACHABLE
    assert "Host key verification failed" in done.text
