"""`python -m tools.lock`: remakes requirements.lock, which pins every Python package by version and hash.

Its first line says from which dependencies it was made, so that a test can tell offline whether it is current.
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
    """The first line of a lock that is made from the dependencies of `pyproject`."""
    project = tomllib.loads(pyproject.read_text())["project"]
    wanted = [project["requires-python"], sorted(project["dependencies"]), project["optional-dependencies"]]
    return f"# Made by `make lock` from dependencies with the digest {cache.digest(json.dumps(wanted))[:16]}"


def main(options: list[str]) -> int:
    """Run uv with the options added (--upgrade takes newer versions); its exit code."""
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
    command += ["--python-version", "3.11", "--no-header", "--quiet", "-o", str(LOCK), *options]
    code = subprocess.run(command, check=False, cwd=ROOT).returncode
    if code == 0:
        LOCK.write_text(f"{headline()}\n{LOCK.read_text()}")
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
