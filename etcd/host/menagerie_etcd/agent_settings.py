"""Settings of a host's agent: the members on this host, and who may send requests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

PATH = Path("/etc/etcd/agent.json")


class Member(NamedTuple):
    """One member on this host. `pki`: the folder with its certificates; `metrics_port`: on 127.0.0.1, in clear text."""

    role: str
    name: str
    unit: str
    backup_unit: str
    data_dir: Path
    peer_url: str
    metrics_port: int
    pki: Path


class Settings(NamedTuple):
    """`operator`: the common name that a client's certificate must have. `ca`: file of the only CA that signs it."""

    address: str
    port: int
    operator: str
    ca: Path
    certificate: Path
    key: Path
    user: str
    programs: Path
    members: dict[str, Member]


def read(path: Path = PATH) -> Settings:
    """Read a file that `etcd.agent` made. OSError, ValueError or KeyError if it is not such a file."""
    known: dict[str, Any] = json.loads(path.read_text())
    members = {
        role: Member(
            role,
            each["name"],
            each["unit"],
            each["backup_unit"],
            Path(each["data_dir"]),
            each["peer_url"],
            int(each["metrics_port"]),
            Path(each["pki"]),
        )
        for role, each in known["members"].items()
    }
    return Settings(
        known["address"],
        int(known["port"]),
        known["operator"],
        Path(known["ca"]),
        Path(known["certificate"]),
        Path(known["key"]),
        known["user"],
        Path(known["programs"]),
        members,
    )
