"""Download programs by URL and SHA-256: plain, compressed, or in an archive."""

from __future__ import annotations

import bz2
import concurrent.futures
import hashlib
import http.client
import shutil
import tarfile
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from .host import CHUNK, Failure, digest, say, write

DOWNLOADS_AT_ONCE = 4


def fetch(url: str, sha256: str, to: Path) -> None:
    """Download `url` to `to`. Failure has the URL and the cause."""
    hashed = hashlib.sha256()
    try:
        with urllib.request.urlopen(url, timeout=30) as answer, to.open("wb") as out:
            for chunk in iter(lambda: answer.read(CHUNK), b""):
                hashed.update(chunk)
                out.write(chunk)
    except urllib.error.HTTPError as error:
        raise Failure(f"{url}: HTTP {error.code} {error.reason}") from None
    except (OSError, http.client.HTTPException) as error:
        raise Failure(f"{url}: {getattr(error, 'reason', error)}") from None
    if hashed.hexdigest() != sha256:
        raise Failure(f"{url}: sha256 is {hashed.hexdigest()}, expected {sha256}")


def unpack(archive: Path, members: list[list[str]], mode: int, url: str) -> None:
    """Extract `members` ([path in the archive, path on the host]) from a tar archive in one pass.

    Upstream may write ./bridge for bridge.
    """
    targets = {name.removeprefix("./"): target for name, target in members}
    with tarfile.open(str(archive), "r|*") as tar:
        for item in tar:
            if not targets:
                break
            name = item.name.removeprefix("./")
            data = tar.extractfile(item) if name in targets and item.isreg() else None
            if data is None:
                continue
            target = targets.pop(name)
            new = Path(target + ".new")
            new.parent.mkdir(parents=True, exist_ok=True)
            with new.open("wb") as out:
                shutil.copyfileobj(data, out, CHUNK)
            new.chmod(mode)
            new.replace(target)
    if targets:
        raise Failure(f"{url}: the archive holds no file {', '.join(targets)}")


def expand(file: Path, mode: int, url: str, target: Path) -> None:
    """Decompress a bzip2 file to `target`."""
    new = Path(str(target) + ".new")
    try:
        with bz2.open(str(file)) as data, new.open("wb") as out:
            shutil.copyfileobj(data, out, CHUNK)
    except (EOFError, OSError) as error:
        raise Failure(f"{url}: {error}") from None
    new.chmod(mode)
    new.replace(target)


def download(item: dict[str, Any], state: Path) -> None:
    """Install an artefact, unless its files match. `state` has the checksums of unpacked files."""
    url, sha256, members = item["url"], item["sha256"], item["members"]
    packed = bool(members) or url.endswith(".bz2")
    targets = [Path(target) for _, target in members] or [Path(item["path"])]
    receipt = state / hashlib.sha256(repr(item).encode()).hexdigest()
    if all(target.exists() for target in targets):
        now = " ".join(digest(target) for target in targets)
        if now == (receipt.read_text() if packed and receipt.exists() else sha256):
            return
    started = time.monotonic()
    temporary = Path(str(targets[0]) + ".download")
    temporary.parent.mkdir(parents=True, exist_ok=True)
    try:
        fetch(url, sha256, temporary)
        if packed:
            if members:
                unpack(temporary, members, item["mode"], url)
            else:
                expand(temporary, item["mode"], url, targets[0])
            receipt.parent.mkdir(parents=True, exist_ok=True)
            write(receipt, " ".join(digest(target) for target in targets).encode(), 0o600, "root:root")
        else:
            temporary.chmod(item["mode"])
            temporary.replace(targets[0])
    finally:
        temporary.unlink(missing_ok=True)
    say(f"{url} in {time.monotonic() - started:.1f} s")


def download_all(items: list[dict[str, Any]], state: Path) -> None:
    """Install all; one Failure has every error."""
    failures = []
    with concurrent.futures.ThreadPoolExecutor(DOWNLOADS_AT_ONCE) as pool:
        for future in [pool.submit(download, item, state) for item in items]:
            try:
                future.result()
            except Failure as failure:
                failures.append(str(failure))
    if failures:
        raise Failure("\n  ".join(failures))
