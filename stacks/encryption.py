"""What encrypts a stack's secrets: a passphrase, a cloud's KMS, or Pulumi Cloud."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from cluster.reading import UnreadableError, read_bytes
from cluster.spec import Cluster
from stacks.errors import PassphraseError

_LONGEST_PASSPHRASE = 2**16
_PASSPHRASE, FILE = "PULUMI_CONFIG_PASSPHRASE", "PULUMI_CONFIG_PASSPHRASE_FILE"
_KEY = "secretsprovider"
_KMS = ("awskms://", "azurekeyvault://", "gcpkms://", "hashivault://")
"""What `--secrets-provider` takes besides a passphrase ("Secrets" in Pulumi's documentation)."""
_BY_SERVICE = "default"
"""`--secrets-provider` for a stack that Pulumi Cloud encrypts."""


@dataclass(frozen=True)
class Choice:
    """What encrypts a stack's secrets.

    provider: as `--secrets-provider` takes it; "" for a passphrase.
    is_own: whether Pulumi.<cluster>.yaml says so: a stack with it exists, or existed.
    """

    provider: str
    is_own: bool


def choice(settings: Path | None, backend: str) -> Choice:
    """Return what encrypts a stack's secrets.

    settings: Pulumi.<cluster>.yaml. It decides; then Pulumi.yaml next to it, for a stack that is still to be created; then
    the backend, by its URL: Pulumi Cloud encrypts what it keeps. Raises PassphraseError for a provider that does not exist.
    """
    own = _read(settings)
    return Choice(_provider(settings, own, backend), _KEY in own or "encryptionsalt" in own)


def provider_of(settings: Path | None, backend: str) -> str:
    """Return the provider of `choice`."""
    return choice(settings, backend).provider


def refuse_other_than_the_fleets(settings: Path) -> None:
    """Raise PassphraseError if Pulumi.yaml names what encrypts all stacks, but something else encrypts this one.

    settings: Pulumi.<cluster>.yaml; it decides if it names a provider. Only for the ordinary CLI: it does not read the key in
    Pulumi.yaml, and has written what it took instead into this file before the program runs.
    """
    own, fleet = _read(settings), settings.with_name("Pulumi.yaml")
    provider, by_passphrase = _named(fleet, _read(fleet)), "encryptionsalt" in own
    if not provider or _named(settings, own) or (by_passphrase and provider == "passphrase"):
        return
    stack = settings.name.removeprefix("Pulumi.").removesuffix(".yaml")
    kept = (
        f"\n  to keep the passphrase, write `secretsprovider: passphrase` into {settings.name}" if by_passphrase else ""
    )
    raise PassphraseError(
        f"{fleet.name} says that {provider} encrypts the secrets of all stacks, but {'a passphrase' if by_passphrase else 'the backend'} "
        f"encrypts those of {stack}: the ordinary CLI does not read that line. Nothing was changed.\n"
        f"  to encrypt them as the file says: pulumi stack change-secrets-provider {shlex.quote(provider)} -s {stack}{kept}"
    )


def _provider(settings: Path | None, own: Mapping[str, Any], backend: str) -> str:
    if provider := _named(settings, own):
        return "" if provider == "passphrase" else provider
    if "encryptionsalt" in own:
        return ""
    shared = settings.with_name("Pulumi.yaml") if settings else None
    if provider := _named(shared, _read(shared)):
        return "" if provider == "passphrase" else provider
    return _BY_SERVICE if backend.startswith(("https://", "http://")) else ""


def _read(file: Path | None) -> Mapping[str, Any]:
    if file is None or not file.exists():
        return {}
    try:
        content = yaml.safe_load(file.read_text())
    except (UnicodeDecodeError, yaml.YAMLError) as error:
        raise PassphraseError(
            f"{file} can't be read, and it may name what encrypts the stack's secrets: {error}"
        ) from None
    return content if isinstance(content, dict) else {}


def _named(file: Path | None, content: Mapping[str, Any]) -> str:
    """Return the file's secrets provider, "" if it leaves the choice to others."""
    provider = str(content.get(_KEY) or "")
    if provider in ("", _BY_SERVICE, "passphrase") or provider.startswith(_KMS):
        return "" if provider == _BY_SERVICE else provider
    raise PassphraseError(
        f"{file}: {_KEY} {provider} is not one that the engine supports; write passphrase, or a key that "
        f"starts with one of {', '.join(_KMS)}"
    )


def passphrase_is_given() -> bool:
    return _PASSPHRASE in os.environ or bool(os.environ.get(FILE))


def refuse_without_passphrase(cluster: Cluster, provider: str) -> None:
    """Raise PassphraseError unless something encrypts the stack's secrets. provider: see `provider_of`.

    The engine prefers the variable to the file, and accepts an empty value as a passphrase like any other.
    """
    if provider:
        return
    if _PASSPHRASE in os.environ:
        if not os.environ[_PASSPHRASE].strip():
            raise PassphraseError(f"{_PASSPHRASE} is empty: {_NOTHING}")
        return
    file = os.environ.get(FILE)
    if not file:
        if not cluster.is_lab:
            raise PassphraseError(
                f"there is no passphrase for the stack's secrets; set {FILE} to a file that contains one, which "
                f"`(umask 077; openssl rand -base64 32 > ~/.menagerie-passphrase)` makes (docs/how-to/state.md)"
            )
        return
    if not os.path.isfile(file):
        raise PassphraseError(f"{FILE} names {file}, which does not exist")
    if not _passphrase(file).strip():
        raise PassphraseError(f"{FILE} names {file}, which is empty: {_NOTHING}")


_NOTHING = (
    f"it would protect nothing; set {FILE} to a file that contains a passphrase, or name a cloud's KMS "
    "(docs/how-to/state.md; to replace an empty passphrase of an existing stack: docs/how-to/state-key.md)"
)


def _passphrase(file: str) -> bytes:
    try:
        return read_bytes(Path(file), _LONGEST_PASSPHRASE)
    except UnreadableError as error:
        raise PassphraseError(f"PULUMI_CONFIG_PASSPHRASE_FILE: {error}") from None
