"""renewal: replaces certificates of this host, also in its kubeconfigs, when two thirds of their life are over, or when
another authority signs or is trusted. Prints the life of each: path -> first and last second, Unix time.

kube-apiserver and its client for aggregated APIs reread theirs automatically. menagerie-refresh restarts programs that
read them only at their start.
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
    """Return the authorities that sign now, by the name of their file. The first certificate of a file signs."""
    return {name: leaf.first((PKI / f"{name}.crt").read_text()) for name in set(LEAVES.values())}


def place(name: str) -> Path:
    """Return the file of a leaf or a kubeconfig."""
    return PKI / f"{name}.crt" if name in LEAVES else KUBERNETES / f"{name}.conf"


def certificate(name: str) -> leaf.Certificate | None:
    """Return the certificate on this host, None if there is no readable one."""
    try:
        text = place(name).read_text()
        return leaf.first(text if name in LEAVES else decoded(text, "client-certificate-data"))
    except (FileNotFoundError, ValueError):
        return None


def due(settings: dict[str, Any], now: float) -> list[str]:
    """Return names of what must be replaced."""
    known = signers()
    names = []
    for name in (*LEAVES, *kubeconfigs(settings)):
        there = certificate(name)
        if there is None or there.is_due(known[LEAVES.get(name, "ca")], now) or not trusts_all(name):
            names.append(name)
    return names


def trusts_all(name: str) -> bool:
    """Return whether a kubeconfig has the authorities on disk. True for a leaf, which has none."""
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
        print("replaced: " + ", ".join(names), file=sys.stderr)
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
