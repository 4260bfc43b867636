"""The payload taken, brought about, and what runs with the former one restarted."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from ..boot.host import Failure, digest, run, say, write
from ..boot.store import PAYLOAD, ask_store, unpacked
from ..refresh.turns import in_turn
from ..refresh.units import PATIENCE_S, TICK_S, changed_at, started_at, succeeds

WANTED = "payload.sha256"
HANDED = Path("/run/menagerie-agent")
UNITS = Path("/etc/systemd/system")
BOOT = "menagerie-boot.service"
# An etcd at its quota takes no lock, and a larger quota comes with a restart.
FULL = "database space exceeded"


def take(sha256: str) -> dict[str, Any]:
    """The payload, on this host's disk and what it is to be from now on; Failure unless the store wants it of this host."""
    wanted = ask_store([WANTED])[WANTED].strip()
    if wanted != sha256:
        raise Failure(f"the store wants payload {wanted[:16]} of this host, and not {sha256[:16]}")
    name = "payload-" + sha256[:16]
    kept = PAYLOAD.with_name(name)
    if not kept.exists() or digest(kept) != sha256:
        write(kept, unpacked(name, (HANDED / name).read_text(), sha256), 0o600, "root:root")
    write(PAYLOAD, f"{sha256}  {name}\n".encode(), 0o644, "root:root")
    config: dict[str, Any] = json.loads(kept.read_bytes())
    return config


def former(sha256: str) -> list[Path]:
    """Other payloads that this host has been, or was about to be."""
    return [path for path in sorted(PAYLOAD.parent.glob("payload-" + "?" * 16)) if not path.name.endswith(sha256[:16])]


def places(config: dict[str, Any]) -> set[str]:
    """Every file that a payload puts on a host."""
    found = {each["path"] for kind in ("files", "secrets") for each in config[kind]}
    for each in config["downloads"]:
        found |= {target for _, target in each["members"]} or {each["path"]}
    return found


def boot() -> None:
    """What fails is tried again by menagerie-boot for ever, also after this has given it up."""
    why = succeeds(["systemctl", "restart", BOOT], PATIENCE_S)
    if why:
        said = run("journalctl", "-n3", "-ocat", "-u", BOOT).strip()
        raise Failure(f"{BOOT} has not brought it about: {why}\n  {said}")


def late(unit: str, paths: list[str]) -> bool:
    """Whether a unit runs since before one of its files came to be as it is."""
    started = started_at(unit)
    there = [path for path in (str(UNITS / unit), *paths) if Path(path).exists()]
    return bool(started and there) and started <= changed_at(there) + TICK_S


def restart(unit: str, lock: list[str], refresh: dict[str, Any]) -> None:
    """Restart a unit, under its lock if it has one: without an etcd that could give it a turn, Failure at once."""
    command = ["systemctl", "restart", unit]
    # Behind -- etcdctl takes no word for a flag of its own.
    turn = ["--", "/bin/sh", "-c", 'echo "the turn of $1 has come" && exec systemctl restart "$1"', "turn", unit]
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
    # The agent starts first and is restarted last: an operator waits for its answer.
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
    say(f"this host is payload {sha256[:16]}")


def main() -> None:
    failed = PAYLOAD.with_name("apply.failed")
    failed.unlink(missing_ok=True)
    try:
        apply(sys.argv[1])
    except (Failure, OSError, KeyError, ValueError) as error:
        text = str(error) or repr(error)
        failed.write_text(text)
        sys.exit(f"menagerie-apply: {text}")
