"""Files that tests use unchanged from a Go module: fetched by Go, which checks them against tools/<module>/go.sum."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path

from cluster.errors import FailedError
from tools import golang, manifest
from tools.manifest import Module


def ensure(name: str) -> Path:
    """Return the path of this file of programs.toml in Go's module cache; fetch and check it once.

    Raises LookupError for a name that programs.toml does not have, and FailedError, with Go's message when the module is
    not available, or without Go.
    """
    module = next((candidate for candidate in manifest.modules().values() if name in candidate.files), None)
    if module is None:
        raise LookupError(f"tools/programs.toml has no file {name}")
    go = golang.find(module.go)
    golang.install(go)
    return downloaded(module, go) / module.files[name]


def downloaded(module: Module, go: golang.Go) -> Path:
    """Return the folder of the pinned module in Go's module cache; Go checks it against go.sum.

    Raises FailedError with Go's message when the module is not available.
    """
    pauses = iter(golang.PAUSES_S)
    while True:
        result = subprocess.run(
            [str(go.program), "mod", "download", "-json", f"{module.pin}@v{module.version}"],
            cwd=module.folder, env=go.environment(module.cgo), stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
        )  # fmt: skip
        if not result.returncode:
            return Path(json.loads(result.stdout)["Dir"])
        output = f"{result.stderr}{result.stdout}".strip()
        pause = next(pauses, None) if golang.is_transient(output) else None
        if pause is None:
            raise FailedError(f"{module.pin} {module.version} cannot be fetched: {output}", code="programs")
        time.sleep(pause)


def names() -> list[str]:
    """Return the file names of programs.toml, without modules that are built only on request."""
    return [name for module in manifest.modules().values() if module.unasked for name in module.files]
