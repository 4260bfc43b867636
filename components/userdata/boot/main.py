"""The steps of a boot, each retried until it succeeds."""

from __future__ import annotations

import time
from typing import Any, Callable, TypeVar

from .disks import mount_disks
from .downloads import download_all
from .host import Failure, say
from .store import PAYLOAD, load_payload, place_secrets
from .system import check_packages, make_users, name_this_host, place_files
from .units import start_units

FIRST_DELAY_S, LAST_DELAY_S = 1.0, 30.0
T = TypeVar("T")


def steps(config: dict[str, Any]) -> list[tuple[str, Callable[[], object]]]:
    """Return all steps in order: (name, function)."""
    state = PAYLOAD.with_name("downloads")
    up: set[str] = set()
    return [
        ("host name", name_this_host),
        ("packages", lambda: check_packages(config["packages"])),
        ("disks", lambda: mount_disks(config["disks"])),
        ("users", lambda: make_users(config["users"])),
        ("files", lambda: place_files(config["files"])),
        ("downloads", lambda: download_all([each for each in config["downloads"] if not each["late"]], state)),
        ("secrets", lambda: place_secrets(config["secrets"])),
        ("units", lambda: start_units(config["start"], up)),
        ("late downloads", lambda: download_all([each for each in config["downloads"] if each["late"]], state)),
    ]


def until_done(name: str, step: Callable[[], T], sleep: Callable[[float], None] = time.sleep) -> T:
    """Retry `step` until it succeeds; return its result. Log an error once, and again when it changes."""
    delay = FIRST_DELAY_S
    logged = ""
    while True:
        try:
            return step()
        except (Failure, OSError, KeyError) as error:
            text = str(error) or repr(error)
            if text != logged:
                say(f"FAILED at {name}, retrying at least every {LAST_DELAY_S:.0f} s: {text}")
                logged = text
        sleep(delay)
        delay = min(delay * 2, LAST_DELAY_S)


def main() -> None:
    started = time.monotonic()
    for name, step in steps(until_done("payload", load_payload)):
        until_done(name, step)
    say(f"everything is in place and started ({time.monotonic() - started:.1f} s)")
