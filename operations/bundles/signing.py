"""Signatures of bundles, in minisign's format: keys, signing and verifying.

`minisign` (Debian has it) makes the same keys and verifies the same signatures.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import minisign

from cluster import writing
from cluster.bundles import PUBLIC_KEYS, BundleError
from cluster.project import FOLDER
from cluster.reading import UnreadableError, read_bytes, read_text

PASSWORD = "MENAGERIE_BUNDLE_PASSWORD"
"""Variable: the password of the secret key, for programs."""
_COMMENT = "untrusted comment:"
_SMALL = 1 << 16
Ask = Callable[[str], str]
"""Asks a person for a password; the argument is the question."""


@dataclass(frozen=True)
class PublicKeys:
    """Keys whose signatures are accepted. file: where they are from."""

    file: Path
    keys: tuple[minisign.PublicKey, ...]

    def verify(self, data: bytes, signature: bytes, what: str) -> None:
        """Raise BundleError unless one of the keys signed the data. what: its file."""
        try:
            parsed = minisign.Signature.from_bytes(signature)
        except minisign.ParseError as error:
            raise BundleError(f"{what} has no signature in minisign's format: {error}") from None
        for key in self.keys:
            try:
                key.verify(data, parsed)
            except minisign.VerifyError:
                continue
            return
        raise BundleError(
            f"{what} isn't signed by a key of {self.file}, or its list was changed. Nothing was taken from it; get the bundle "
            "again from who made it, or ask them for their public key"
        )


def public_file(root: Path) -> Path:
    """Return the file of a fleet's public keys."""
    return root / FOLDER / PUBLIC_KEYS


def public_keys(path: Path) -> PublicKeys:
    """Read public keys: a file as minisign writes it, or several below each other. Raises BundleError."""
    try:
        lines = read_text(path, _SMALL).splitlines()
    except UnreadableError as error:
        raise BundleError(
            f"{error}; it has the public keys whose bundles are accepted: copy the one of the bundle's maker there, or name "
            "another file with --public-key"
        ) from None
    try:
        words = [line.strip() for line in lines if line.strip() and not line.startswith(_COMMENT)]
        keys = tuple(minisign.PublicKey.from_base64(word) for word in words)
    except (minisign.ParseError, ValueError) as error:
        raise BundleError(f"{path} has something else than public keys of minisign: {error}") from None
    if not keys:
        raise BundleError(f"{path} has no public key of minisign")
    return PublicKeys(path, keys)


def secret_key(path: Path, ask: Ask) -> minisign.SecretKey:
    """Read and open a secret key. Raises BundleError; no message repeats content of the file."""
    try:
        key = minisign.SecretKey.from_bytes(read_bytes(path, _SMALL))
    except UnreadableError as error:
        raise BundleError(
            f"{error}; bundles are always signed. To create a key there, run the same command with --new-key; its public "
            f"half goes to {FOLDER}/{PUBLIC_KEYS}"
        ) from None
    except (minisign.ParseError, ValueError):
        raise BundleError(f"{path} is no secret key of minisign") from None
    if key.is_encrypted():
        given = os.environ.get(PASSWORD)
        try:
            key.decrypt(ask(f"Password of {path}: ") if given is None else given)
        except minisign.Error:
            raise BundleError(f"the password doesn't open {path}") from None
    return key


def new_key(path: Path, public: Path, ask: Ask) -> None:
    """Create a secret key, which only its owner can read, and add its public half to a file. Raises BundleError."""
    if os.path.lexists(path):
        raise BundleError(f"{path} exists and was not changed; leave --new-key out to sign with it")
    given = os.environ.get(PASSWORD)
    password = ask("Password of the new key, empty for none: ") if given is None else given
    pair = minisign.KeyPair.generate()
    if password:
        pair.secret_key.encrypt(password)
    before = public.read_text(encoding="utf-8") if public.exists() else ""
    writing.replace(path, bytes(pair.secret_key) + b"\n", mode=0o600)
    writing.replace(public, before.encode() + bytes(pair.public_key) + b"\n")


def sign(data: bytes, key: minisign.SecretKey, comment: str) -> bytes:
    """Return the signature of data. comment: words that it covers too."""
    return bytes(key.sign(data, trusted_comment=comment, untrusted_comment="signature of a Menagerie bundle"))
