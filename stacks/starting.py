"""What an engine is started with: its plugins, its home and the CLI."""

from __future__ import annotations

import os
import secrets
import sys
import tempfile
from pathlib import Path

from cluster.project import TOOLKIT
from stacks import encryption, lean
from stacks.backend import login

_PLUGINS = TOOLKIT / "stacks" / "plugins"


def environment(state_dir: Path, *, provider: str = "") -> dict[str, str]:
    """Return variables to add to the process's own. provider: see `encryption.provider_of`."""
    paths = [str(_PLUGINS), os.environ.get("PATH", "")]
    python_path = [str(TOOLKIT), os.environ.get("PYTHONPATH", "")]
    home = ensured(state_dir / "pulumi-home")
    lean.without_log_files(home)
    variables = {
        # All plugins are already here: `operations.plugins` provides those of a cloud.
        "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
        "PATH": os.pathsep.join(filter(None, paths)),
        "PYTHONPATH": os.pathsep.join(filter(None, python_path)),
        "MENAGERIE_PYTHON": sys.executable,
        "PULUMI_SKIP_UPDATE_CHECK": "true",
        "PULUMI_HOME": str(home),
        **login(os.environ),
    }
    if not provider and not encryption.passphrase_is_given():
        variables[encryption.FILE] = str(_lab_passphrase(state_dir))
    return variables


def command_root(pulumi: Path, state_dir: Path) -> Path:
    """Create and return a folder with ``bin/pulumi``, the layout that the Automation API expects."""
    link = ensured(state_dir / "pulumi-cli" / "bin") / "pulumi"
    link_to(link, pulumi)
    return link.parent.parent


def link_to(link: Path, target: Path) -> None:
    if not link.is_symlink() or link.readlink() != target:
        link.unlink(missing_ok=True)
        link.symlink_to(target)


def ensured(folder: Path) -> Path:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


def _lab_passphrase(state_dir: Path) -> Path:
    """Create the passphrase file atomically: the engine takes an empty file for an empty passphrase."""
    path = state_dir / "passphrase"
    if not path.exists():
        with tempfile.NamedTemporaryFile("w", dir=state_dir) as file:
            file.write(secrets.token_urlsafe(32))
            file.flush()
            os.fsync(file.fileno())
            os.link(file.name, path)
    return path
