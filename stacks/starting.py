"""What an engine is started with: its plugins, its home, the CLI, and the encryption of secrets."""

from __future__ import annotations

import os
import secrets
import sys
import tempfile
from pathlib import Path

import yaml

from cluster.project import TOOLKIT
from cluster.reading import UnreadableError, read_bytes
from cluster.spec import Cluster
from stacks import lean
from stacks.errors import PassphraseError

_LONGEST_PASSPHRASE = 2**16
_PLUGINS = TOOLKIT / "stacks" / "plugins"
_PASSPHRASE, _FILE = "PULUMI_CONFIG_PASSPHRASE", "PULUMI_CONFIG_PASSPHRASE_FILE"
_KMS = ("awskms://", "azurekeyvault://", "gcpkms://", "hashivault://")
"""What `--secrets-provider` takes besides a passphrase ("Secrets" in Pulumi's documentation)."""


def environment(state_dir: Path, *, kms: str = "") -> dict[str, str]:
    """Return variables to add to the process's own. kms: the key that encrypts secrets, "" for a passphrase."""
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
    }
    if not kms and not _passphrase_is_given():
        variables[_FILE] = str(_lab_passphrase(state_dir))
    return variables


def kms_of(settings: Path | None) -> str:
    """Return the key of a cloud's KMS that Pulumi.<cluster>.yaml names (``secretsprovider``), "" for a passphrase.

    Raises PassphraseError for a value that is neither.
    """
    if settings is None or not settings.exists():
        return ""
    try:
        content = yaml.safe_load(settings.read_text())
    except (UnicodeDecodeError, yaml.YAMLError) as error:
        raise PassphraseError(
            f"{settings} can't be read, and it may name what encrypts the stack's secrets: {error}"
        ) from None
    provider = str(content.get("secretsprovider") or "") if isinstance(content, dict) else ""
    if provider in ("", "default", "passphrase"):
        return ""
    if not provider.startswith(_KMS):
        raise PassphraseError(
            f"{settings}: secretsprovider {provider} is not one that the engine supports; write passphrase, or a key that "
            f"starts with one of {', '.join(_KMS)}"
        )
    return provider


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


def _passphrase_is_given() -> bool:
    return _PASSPHRASE in os.environ or bool(os.environ.get(_FILE))


def refuse_without_passphrase(cluster: Cluster, kms: str) -> None:
    """Raise PassphraseError unless something encrypts the stack's secrets. kms: see `kms_of`; it needs no passphrase.

    The engine prefers the variable to the file, and accepts an empty value as a passphrase like any other.
    """
    if kms:
        return
    if _PASSPHRASE in os.environ:
        if not os.environ[_PASSPHRASE].strip():
            raise PassphraseError(f"{_PASSPHRASE} is empty: {_NOTHING}")
        return
    file = os.environ.get(_FILE)
    if not file:
        if not cluster.is_lab:
            raise PassphraseError(
                f"there is no passphrase for the stack's secrets; set {_FILE} to a file that contains one"
            )
        return
    if not os.path.isfile(file):
        raise PassphraseError(f"{_FILE} names {file}, which does not exist")
    if not _passphrase(file).strip():
        raise PassphraseError(f"{_FILE} names {file}, which is empty: {_NOTHING}")


_NOTHING = (
    f"it would protect nothing; set {_FILE} to a file that contains a passphrase, or name a cloud's KMS "
    "(docs/how-to/state.md, which also says how to replace an empty passphrase of an existing stack)"
)


def _passphrase(file: str) -> bytes:
    try:
        return read_bytes(Path(file), _LONGEST_PASSPHRASE)
    except UnreadableError as error:
        raise PassphraseError(f"PULUMI_CONFIG_PASSPHRASE_FILE: {error}") from None


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
