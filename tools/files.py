"""Files that tests take as they stand in a Go module: fetched by Go, which checks them against tools/<module>/go.sum."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path

from cluster.errors import FailedError
from tools import golang, manifest
from tools.manifest import Module


def ensure(name: str) -> Path:
    """The file of this name of programs.toml, in Go's module cache: fetched once, and checked.

    LookupError for a name that programs.toml does not have, FailedError with Go's words when the module cannot be had,
    golang.FailedError without Go."""
    module = next((each for each in manifest.modules().values() if name in each.files), None)
    if module is None:
        raise LookupError(f"tools/programs.toml has no file {name}")
    go = golang.find(module.go)
    golang.install(go)
    return Path(json.loads(_downloaded(name, module, go))["Dir"]) / module.files[name]


def _downloaded(name: str, module: Module, go: golang.Go) -> str:
    """What Go says of the module once it has it."""
    pauses = iter(golang.PAUSES_S)
    while True:
        done = subprocess.run(
            [str(go.program), "mod", "download", "-json", f"{module.pin}@v{module.version}"],
            cwd=module.folder, env=go.environment(module.cgo), stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
        )  # fmt: skip
        if not done.returncode:
            return done.stdout
        said = f"{done.stderr}{done.stdout}".strip()
        pause = next(pauses, None) if golang.is_passing(said) else None
        if pause is None:
            raise FailedError(f"{name} of {module.pin} {module.version} cannot be had: {said}", code="programs")
        time.sleep(pause)


def names() -> list[str]:
    """Those that programs.toml has, but for modules of which nothing is built unless it is asked for."""
    return [name for module in manifest.modules().values() if module.unasked for name in module.files]
