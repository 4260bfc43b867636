"""Old data that members keep on their hosts: folders left by restore and replace, which `forget` deletes."""

from __future__ import annotations

from operations.etcds.look import EtcdAccess, of_all
from operations.etcds.snapshots import EtcdRefusedError

_BEFORE = "before-"
"""`menagerie_etcd.surgery.KEPT`: prefix of a token in the name of a folder with a member's former data."""


def folders_aside(etcd: EtcdAccess, token: str, older_than_s: float | None) -> dict[str, list[str]]:
    """Return member -> folders that `forget` would delete. Raises EtcdRefusedError if an older agent doesn't report ages."""
    states = of_all(etcd, lambda agent: agent.state())
    if older_than_s is None:
        return {
            member: [name for name in state["kept_aside"] if name in (token, _BEFORE + token)]
            for member, state in states.items()
        }
    if old := [member for member, state in states.items() if "kept_aside_s" not in state]:
        raise EtcdRefusedError(
            f"the agents of {', '.join(old)} do not report the age of folders yet. Update them first: "
            f"./menagerie etcd roll {etcd.cluster.name} {etcd.role}. Or select one operation with --token."
        )
    return {
        member: [name for name, age in state["kept_aside_s"].items() if age > older_than_s]
        for member, state in states.items()
    }
