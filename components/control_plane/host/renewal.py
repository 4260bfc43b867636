"""renewal: certificates of this host, and those in its kubeconfigs, made anew before they have used up two thirds of their
life, or once another authority signs or is trusted. Prints how long each lives: path -> first and last second, Unix time.

kube-apiserver reads its own again by itself, and so does its client for aggregated APIs; who reads them at its start only
is restarted by menagerie-refresh.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from . import leaf
from .api import decoded
from .phases import KUBERNETES, LEAVES, PKI, SETTINGS, kubeconfigs, make, read_own_address, render_config


def signers() -> dict[str, leaf.Certificate]:
    """What signs now, by the name of its file; it stands first there."""
    return {name: leaf.first((PKI / f"{name}.crt").read_text()) for name in set(LEAVES.values())}


def place(name: str) -> Path:
    """The file of a leaf, or of a kubeconfig."""
    return PKI / f"{name}.crt" if name in LEAVES else KUBERNETES / f"{name}.conf"


def certificate(name: str) -> leaf.Certificate | None:
    """As it is on this host; None where there is none that can be read."""
    try:
        text = place(name).read_text()
        return leaf.first(text if name in LEAVES else decoded(text, "client-certificate-data"))
    except (FileNotFoundError, ValueError):
        return None


def due(settings: dict[str, Any], now: float) -> list[str]:
    """What is to be made anew."""
    known = signers()
    found = []
    for name in (*LEAVES, *kubeconfigs(settings)):
        there = certificate(name)
        if there is None or there.is_due(known[LEAVES.get(name, "ca")], now) or not trusts_all(name):
            found.append(name)
    return found


def trusts_all(name: str) -> bool:
    """Whether a kubeconfig holds the authorities that are on the disk; a leaf holds none."""
    if name in LEAVES:
        return True
    try:
        return decoded(place(name).read_text(), "certificate-authority-data") == (PKI / "ca.crt").read_text()
    except ValueError:
        return False


def main() -> None:
    settings = json.loads(SETTINGS.read_text())
    names = due(settings, time.time())
    if names:
        render_config(settings, read_own_address(settings))
        make(settings, names)
        print("made anew: " + ", ".join(names), file=sys.stderr)
    lives = {}
    for name in (*LEAVES, *kubeconfigs(settings)):
        made = certificate(name)
        if made:
            lives[str(place(name))] = [made.begins, made.ends]
    print(json.dumps(lives))


if __name__ == "__main__":
    try:
        main()
    except (RuntimeError, LookupError, ValueError, OSError, subprocess.SubprocessError) as failure:
        sys.exit(str(failure))
