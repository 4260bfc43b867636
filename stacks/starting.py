"""What an engine is started with: where its plugins, its home and the program itself are, and what encrypts secrets."""

from __future__ import annotations

import os
import secrets
import sys
import tempfile
from pathlib import Path

import yaml

from cluster.project import ROOT
from cluster.reading import UnreadableError, read_bytes
from cluster.spec import Cluster
from stacks import lean
from stacks.errors import PassphraseError

_LONGEST_PASSPHRASE = 2**16
_PLUGINS = ROOT / "stacks" / "plugins"
_PASSPHRASE, _FILE = "PULUMI_CONFIG_PASSPHRASE", "PULUMI_CONFIG_PASSPHRASE_FILE"
_KMS = ("awskms://", "azurekeyvault://", "gcpkms://", "hashivault://")
"""What `--secrets-provider` takes beside a passphrase ("Secrets" of Pulumi's documentation)."""


def environment(state_dir: Path, *, kms: str = "") -> dict[str, str]:
    """Variables, beside those that the process has. kms: the key that encrypts secrets, "" for a passphrase."""
    paths = [str(_PLUGINS), os.environ.get("PATH", "")]
    python_path = [str(ROOT), os.environ.get("PYTHONPATH", "")]
    home = made(state_dir / "pulumi-home")
    lean.without_log_files(home)
    found = {
        # All plugins are here: `operations.plugins` provides a cloud's.
        "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
        "PATH": os.pathsep.join(filter(None, paths)),
        "PYTHONPATH": os.pathsep.join(filter(None, python_path)),
        "MENAGERIE_PYTHON": sys.executable,
        "PULUMI_SKIP_UPDATE_CHECK": "true",
        "PULUMI_HOME": str(home),
    }
    if not kms and not _passphrase_is_given():
        found[_FILE] = str(_lab_passphrase(state_dir))
    return found


def kms_of(settings: Path | None) -> str:
    """The key of a cloud's KMS that Pulumi.<cluster>.yaml names (``secretsprovider``), "" for a passphrase.

    PassphraseError for a value that is neither.
    """
    if settings is None or not settings.exists():
        return ""
    try:
        known = yaml.safe_load(settings.read_text())
    except (UnicodeDecodeError, yaml.YAMLError) as error:
        raise PassphraseError(
            f"{settings} can't be read, and says what encrypts the stack's secrets: {error}"
        ) from None
    said = str(known.get("secretsprovider") or "") if isinstance(known, dict) else ""
    if said in ("", "default", "passphrase"):
        return ""
    if not said.startswith(_KMS):
        raise PassphraseError(
            f"{settings}: secretsprovider {said} is none that the engine has; write passphrase, or a key that begins with "
            f"{', '.join(_KMS)}"
        )
    return said


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
    return _PASSPHRASE in os.environ or bool(os.environ.get(_FILE))


def refuse_without_passphrase(cluster: Cluster, kms: str) -> None:
    """PassphraseError unless something encrypts the stack's secrets. kms: see `kms_of`; it needs no passphrase.

    The engine takes the variable before the file, and an empty one for a passphrase like any other.
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
            raise PassphraseError(f"no passphrase for the stack's secrets; set {_FILE} to a file that holds it")
        return
    if not os.path.isfile(file):
        raise PassphraseError(f"{_FILE} names {file}, and there is no such file")
    if not _passphrase(file).strip():
        raise PassphraseError(f"{_FILE} names {file}, which is empty: {_NOTHING}")


_NOTHING = (
    f"it would protect nothing; set {_FILE} to a file that holds a passphrase, or name a cloud's KMS "
    "(docs/how-to/state.md, which also says how a stack that has an empty one gets another)"
)


def _passphrase(file: str) -> bytes:
    try:
        return read_bytes(Path(file), _LONGEST_PASSPHRASE)
    except UnreadableError as error:
        raise PassphraseError(f"PULUMI_CONFIG_PASSPHRASE_FILE: {error}") from None


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
