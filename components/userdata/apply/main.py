"""Save the payload, apply it, and restart units that still run with the former one."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from ..boot.host import Failure, digest, run, say, write
from ..boot.store import PAYLOAD, ask_store, unpacked
from ..refresh.turns import in_turn
from ..refresh.units import PATIENCE_S, TICK_S, changed_at, started_at, succeeds

ASSIGNMENT = "payload.sha256"
HANDED = Path("/run/menagerie-agent")
UNITS = Path("/etc/systemd/system")
BOOT = "menagerie-boot.service"
# An etcd at its quota grants no lock, and a larger quota needs a restart.
FULL = "database space exceeded"


def take(sha256: str) -> dict[str, Any]:
    """Save the payload, make it this host's own, and return it. Failure unless the store assigns it to this host."""
    assigned = ask_store([ASSIGNMENT])[ASSIGNMENT].strip()
    if assigned != sha256:
        raise Failure(f"the store assigns payload {assigned[:16]} to this host, not {sha256[:16]}")
    name = "payload-" + sha256[:16]
    kept = PAYLOAD.with_name(name)
    if not kept.exists() or digest(kept) != sha256:
        write(kept, unpacked(name, (HANDED / name).read_text(), sha256), 0o600, "root:root")
    write(PAYLOAD, f"{sha256}  {name}\n".encode(), 0o644, "root:root")
    config: dict[str, Any] = json.loads(kept.read_bytes())
    return config


def former(sha256: str) -> list[Path]:
    """Return the files of other payloads: former ones, and those of interrupted runs."""
    return [path for path in sorted(PAYLOAD.parent.glob("payload-" + "?" * 16)) if not path.name.endswith(sha256[:16])]


def places(config: dict[str, Any]) -> set[str]:
    """Return the path of every file that a payload puts on a host."""
    paths = {each["path"] for kind in ("files", "secrets") for each in config[kind]}
    for each in config["downloads"]:
        paths |= {target for _, target in each["members"]} or {each["path"]}
    return paths


def boot() -> None:
    """Run menagerie-boot. It retries for ever, even after this function gives up."""
    why = succeeds(["systemctl", "restart", BOOT], PATIENCE_S)
    if why:
        said = run("journalctl", "-n3", "-ocat", "-u", BOOT).strip()
        raise Failure(f"{BOOT} did not succeed: {why}\n  {said}")


def late(unit: str, paths: list[str]) -> bool:
    """Return whether a unit started before one of its files last changed."""
    started = started_at(unit)
    there = [path for path in (str(UNITS / unit), *paths) if Path(path).exists()]
    return bool(started and there) and started <= changed_at(there) + TICK_S


def restart(unit: str, lock: list[str], refresh: dict[str, Any]) -> None:
    """Restart a unit, under its lock if it has one. Failure at once if the etcd that grants locks is out of reach."""
    command = ["systemctl", "restart", unit]
    # etcdctl parses no flags after --.
    turn = ["--", "/bin/sh", "-c", 'echo "$1 has the lock" && exec systemctl restart "$1"', "turn", unit]
    why = in_turn([*lock, *turn], refresh) if lock else succeeds(command, PATIENCE_S)
    if lock and FULL in why:
        why = succeeds(command, PATIENCE_S)
    if why:
        raise Failure(f"the restart of {unit} failed: {why}")
    say(f"{unit} restarted")


def apply(sha256: str) -> None:
    config = take(sha256)
    boot()
    others = [json.loads(path.read_bytes()) for path in former(sha256)]
    for unit in dict.fromkeys(name for other in others for name in other["start"] if name not in config["start"]):
        run("systemctl", "stop", unit)
    paths = {each["unit"]: each["paths"] for each in config["refresh"]["programs"]}
    locks = {each["unit"]: each["lock"] for each in config["refresh"]["consumers"]}
    # The agent starts first and restarts last: an operator waits for its answer.
    for unit in reversed(config["start"]):
        if late(unit, paths.get(unit, [])):
            restart(unit, locks.get(unit, []), config["refresh"])
    gone = sorted({path for other in others for path in places(other)} - places(config))
    for path in gone:
        Path(path).unlink(missing_ok=True)
    if any(Path(path).parent == UNITS for path in gone):
        run("systemctl", "daemon-reload")
    for kept in former(sha256):
        kept.unlink()
    say(f"this host now has payload {sha256[:16]}")


def main() -> None:
    failed = PAYLOAD.with_name("apply.failed")
    failed.unlink(missing_ok=True)
    try:
        apply(sys.argv[1])
    except (Failure, OSError, KeyError, ValueError) as error:
        text = str(error) or repr(error)
        failed.write_text(text)
        sys.exit(f"menagerie-apply: {text}")
