#!/usr/bin/python3
"""Print what this machine has, as JSON, for an image that is made of it: packages, programs, options of its kernel.

`doctor` compares it with what a cluster's hosts need (components/image_needs.py). Standard library only.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

FOLDERS = ("usr/local/sbin", "usr/local/bin", "usr/sbin", "usr/bin", "sbin", "bin")


def packages() -> dict[str, str]:
    """Return Debian package -> version, of those that are installed."""
    form = "${db:Status-Abbrev} ${Package} ${Version}\\n"
    rows = subprocess.run(["dpkg-query", "--show", "--showformat", form], check=True, capture_output=True, text=True)
    fields = [row.split() for row in rows.stdout.splitlines() if row.startswith(("ii", "hi"))]
    return {name: version for _, name, version in fields}


def programs(root: Path) -> list[str]:
    """Return the names of all programs in the folders of a login."""
    paths = [path for folder in FOLDERS for path in (root / folder).glob("*")]
    return sorted({path.name for path in paths if os.access(path, os.X_OK) or path.is_symlink()})


def kernel(root: Path) -> list[str]:
    """Return the options that every installed kernel has, built in or as a module, without CONFIG_."""
    texts = [path.read_text() for path in (root / "boot").glob("config-*")]
    options = [set(re.findall(r"^CONFIG_(\w+)=[ym]$", text, re.MULTILINE)) for text in texts]
    return sorted(set.intersection(*options)) if options else []


def main(root: Path = Path("/")) -> None:
    """Print the manifest."""
    release = dict(line.split("=", 1) for line in (root / "etc/os-release").read_text().splitlines() if "=" in line)
    manifest = {
        "release": release["PRETTY_NAME"].strip('"'),
        "packages": packages(),
        "programs": programs(root),
        "kernel": kernel(root),
    }
    print(json.dumps(manifest, indent=1, sort_keys=True))


if __name__ == "__main__":
    main()
