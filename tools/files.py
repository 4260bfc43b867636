"""Files that tests take as they stand in a Go module: fetched by Go, which checks them against tools/<module>/go.sum."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from tools import golang, manifest
from tools.build import BuildError


def ensure(name: str) -> Path:
    """The file of this name of programs.toml, in Go's module cache: fetched once, and checked.

    LookupError for a name that programs.toml does not have, BuildError with Go's words when the module cannot be had,
    golang.GoMissing without Go."""
    module = next((each for each in manifest.modules().values() if name in each.files), None)
    if module is None:
        raise LookupError(f"tools/programs.toml has no file {name}")
    go = golang.find(module.go)
    golang.install(go)
    done = subprocess.run(
        [str(go.program), "mod", "download", "-json", f"{module.pin}@v{module.version}"],
        cwd=module.folder, env=go.environment(module.cgo), stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise BuildError(
            f"{name} of {module.pin} {module.version} cannot be had: {(done.stderr or done.stdout).strip()}"
        )
    return Path(json.loads(done.stdout)["Dir"]) / module.files[name]


def names() -> list[str]:
    """Those that programs.toml has, but for modules of which nothing is built unless it is asked for."""
    return [name for module in manifest.modules().values() if module.unasked for name in module.files]
