"""What an engine is started with: where its plugins, its home and the program itself are, and what encrypts secrets."""

from __future__ import annotations

import os
import secrets
import sys
import tempfile
from pathlib import Path

from cluster.spec import Cluster
from stacks import lean
from stacks.errors import PassphraseError

ROOT = Path(__file__).resolve().parent.parent
_PLUGINS = ROOT / "stacks" / "plugins"


def environment(state_dir: Path, *, is_lab: bool) -> dict[str, str]:
    """Variables, beside those that the process has."""
    paths = [str(_PLUGINS), os.environ.get("PATH", "")]
    python_path = [str(ROOT), os.environ.get("PYTHONPATH", "")]
    home = made(state_dir / "pulumi-home")
    lean.without_log_files(home)
    found = {
        "PATH": os.pathsep.join(filter(None, paths)),
        "PYTHONPATH": os.pathsep.join(filter(None, python_path)),
        "MENAGERIE_PYTHON": sys.executable,
        "PULUMI_SKIP_UPDATE_CHECK": "true",
        "PULUMI_HOME": str(home),
    }
    if is_lab or "PULUMI_DEBUG_PROVIDERS" in os.environ:
        # All plugins are here. A cloud's own provider is fetched by the engine the first time.
        found["PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION"] = "true"
    if not _passphrase_is_given():
        found["PULUMI_CONFIG_PASSPHRASE_FILE"] = str(_lab_passphrase(state_dir))
    return found


def command_root(pulumi: Path, state_dir: Path) -> Path:
    """A folder with ``bin/pulumi``, the layout that the Automation API looks for."""
    link = made(state_dir / "pulumi-cli" / "bin") / "pulumi"
    link_to(link, pulumi)
    return link.parent.parent


def link_to(link: Path, target: Path) -> None:
    if not link.is_symlink() or link.readlink() != target:
        link.unlink(missing_ok=True)
        link.symlink_to(target)


def made(folder: Path) -> Path:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


def _passphrase_is_given() -> bool:
    return any(name in os.environ for name in ("PULUMI_CONFIG_PASSPHRASE", "PULUMI_CONFIG_PASSPHRASE_FILE"))


def refuse_without_passphrase(cluster: Cluster) -> None:
    if not cluster.is_lab and not _passphrase_is_given():
        raise PassphraseError(
            "no passphrase for the stack's secrets; set PULUMI_CONFIG_PASSPHRASE_FILE to a file that holds it"
        )
    file = os.environ.get("PULUMI_CONFIG_PASSPHRASE_FILE")
    if file and not os.path.isfile(file):
        raise PassphraseError(f"PULUMI_CONFIG_PASSPHRASE_FILE names {file}, and there is no such file")
    if file and not Path(file).read_text().strip():
        raise PassphraseError(f"PULUMI_CONFIG_PASSPHRASE_FILE names {file}, which is empty: it would protect nothing")


def _lab_passphrase(state_dir: Path) -> Path:
    """Whole or not there at all: the engine takes an empty file for an empty passphrase."""
    path = state_dir / "passphrase"
    if not path.exists():
        with tempfile.NamedTemporaryFile("w", dir=state_dir) as file:
            file.write(secrets.token_urlsafe(32))
            file.flush()
            os.fsync(file.fileno())
            os.link(file.name, path)
    return path
