"""What a host's agent was told: the members on this host, and who may ask."""

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
    """`operator` is the common name that a client's certificate must have; `ca` the file of the only CA that signs it."""

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
    """The settings in a file that `etcd.agent` made. OSError, ValueError or KeyError when it isn't one."""
    told: dict[str, Any] = json.loads(path.read_text())
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
        for role, each in told["members"].items()
    }
    return Settings(
        told["address"],
        int(told["port"]),
        told["operator"],
        Path(told["ca"]),
        Path(told["certificate"]),
        Path(told["key"]),
        told["user"],
        Path(told["programs"]),
        members,
    )
