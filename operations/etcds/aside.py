"""What members keep aside on their hosts: folders that restore and replace left there, which `forget` deletes."""

from __future__ import annotations

from operations.etcds.look import Etcd, of_all
from operations.etcds.snapshots import EtcdRefusedError

_BEFORE = "before-"
"""`menagerie_etcd.surgery.KEPT`, which precedes a token where a member's former data is kept."""


def kept(etcd: Etcd, token: str, older_than_s: float | None) -> dict[str, list[str]]:
    """Member -> the folders that `forget` would delete. EtcdRefusedError where an agent of an older payload knows no ages."""
    told = of_all(etcd, lambda agent: agent.state())
    if older_than_s is None:
        return {
            member: [name for name in state["kept_aside"] if name in (token, _BEFORE + token)]
            for member, state in told.items()
        }
    if old := [member for member, state in told.items() if "kept_aside_s" not in state]:
        raise EtcdRefusedError(
            f"the agents of {', '.join(old)} do not report the age of folders yet. Run first: "
            f"./menagerie etcd roll {etcd.cluster.name} {etcd.role}. Or name one operation with --token."
        )
    return {
        member: [name for name, age in state["kept_aside_s"].items() if age > older_than_s]
        for member, state in told.items()
    }
