"""A fake Go for tests: a script in its place on PATH, and a separate cache per test."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

SCRIPT = """#!/bin/sh
case $1 in
env) echo {version}; echo amd64 ;;
build | test)
    suffix=; [ "$1" = build ] || suffix=.test
    echo "$@" >>{log}
    {build}
    while [ "$1" != -o ]; do shift; done
    out=$2; shift 2
    for package in "$@"; do name=${{package%/v[0-9]}}; echo "$package" >"$out${{name##*/}}$suffix"; done ;;
esac
"""


@pytest.fixture
def fake_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Return fake_go(version, build="shell commands of every build") -> the file that logs its builds."""

    def make(version: str = "go1.99.0", build: str = ":") -> Path:
        folder = tmp_path / "bin"
        folder.mkdir(exist_ok=True)
        log = tmp_path / "builds"
        (folder / "go").write_text(SCRIPT.format(version=version, build=build, log=log))
        (folder / "go").chmod(0o755)
        monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
        return log

    monkeypatch.setenv("MENAGERIE_CACHE", str(tmp_path / "cache"))
    return make
