"""Machines at the lab's site that are not workers, for roles that no worker of the lab has."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sandbox.lab import datacentre, hosts, plan


@contextmanager
def host(name: str, rack: str, address: str, key: Path) -> Iterator[None]:
    """Run a machine at the site that is not a worker, for a block."""
    public = key.with_suffix(".pub").read_text().strip()
    spec = hosts.HostSpec(name, "onprem", plan.rack(rack), address, authorized_keys=(public,), host_key=key.read_text())
    hosts.create(spec, datacentre.spec())
    try:
        yield
    finally:
        hosts.delete(name)


def on(name: str, script: str) -> str:
    done = hosts.run(name, ["sh", "-c", script])
    assert done.returncode == 0, f"{name}: {script}: {done.stdout}{done.stderr}"
    return done.stdout


def put(name: str, path: str, text: str) -> None:
    subprocess.run(
        hosts.inside(name, ["sh", "-c", f"cat >{path}; chmod 0600 {path}"]), input=text, text=True, check=True
    )
