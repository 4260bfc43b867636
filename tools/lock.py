"""`python -m tools.lock`: regenerate requirements.lock, which pins every Python package by version and hash.

One lock serves every Python from 3.11 on: lines that only some of them need have a marker.

Its first line has a digest of the dependencies it was made from, so that a test can check offline whether it is current.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path

from tools import cache, manifest

ROOT = manifest.TOOLS.parent
LOCK = ROOT / "requirements.lock"


def headline(pyproject: Path = ROOT / "pyproject.toml") -> str:
    """Return the first line of a lock that is made from the dependencies of `pyproject`."""
    project = tomllib.loads(pyproject.read_text())["project"]
    dependencies = [project["requires-python"], sorted(project["dependencies"]), project["optional-dependencies"]]
    return f"# Made by `make lock` from dependencies with the digest {cache.digest(json.dumps(dependencies))[:16]}"


def main(options: list[str]) -> int:
    """Run uv with these options (--upgrade allows newer versions); return its exit code."""
    command = [
        str(manifest.TOOLS / "setup.sh"),
        "uv",
        "pip",
        "compile",
        "pyproject.toml",
        "--extra",
        "dev",
        "--generate-hashes",
    ]
    command += ["--universal", "--python-version", "3.11", "--no-header", "--quiet", "-o", str(LOCK), *options]
    code = subprocess.run(command, check=False, cwd=ROOT).returncode
    if code == 0:
        LOCK.write_text(f"{headline()}\n{LOCK.read_text()}")
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
