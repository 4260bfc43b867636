"""Fetch programs by URL and checksum, bare or from an archive, in parallel; each is placed atomically."""

from __future__ import annotations

import concurrent.futures
import hashlib
import http.client
import os
import shutil
import tarfile
import tempfile
import time
import urllib.error
import urllib.request
from typing import IO, Any

from . import Refused
from .files import replacing

CHUNK = 1 << 20


def download(program: dict[str, Any], into: IO[bytes], timeout: int) -> None:
    """Refused if the checksum differs, OSError if the network fails."""
    digest = hashlib.sha256()
    with urllib.request.urlopen(program["url"], timeout=timeout) as answer:
        while chunk := answer.read(CHUNK):
            digest.update(chunk)
            into.write(chunk)
    into.flush()
    if digest.hexdigest() != program["sha256"]:
        raise Refused(
            f"{program['url']} has SHA-256 {digest.hexdigest()}, expected {program['sha256']}: "
            "the mirror holds another build, or the file was altered on the way"
        )


def download_patiently(program: dict[str, Any], into: IO[bytes], attempts: int, timeout: int) -> None:
    for attempt in range(1, attempts + 1):
        try:
            into.seek(0)
            into.truncate()
            download(program, into, timeout)
            return
        except urllib.error.HTTPError as error:
            if error.code < 500 or attempt == attempts:
                raise Refused(f"{program['url']} answers {error.code} {error.reason}") from None
        except (OSError, http.client.HTTPException) as error:
            if attempt == attempts:
                raise Refused(f"{program['url']} can't be fetched ({attempts} attempts): {error}") from None
        time.sleep(2.0 ** (attempt - 1))


def install_stream(stream: IO[bytes], path: str, mode: int) -> str:
    """Place a program and return its SHA-256."""
    digest = hashlib.sha256()
    with replacing(path, mode) as out:
        while chunk := stream.read(CHUNK):
            digest.update(chunk)
            out.write(chunk)
    return digest.hexdigest()


def unpack(program: dict[str, Any], archive: IO[bytes]) -> dict[str, Any]:
    """Install the archive's members. A leading "./" of names is ignored: only some upstreams write it."""
    missing = {name.removeprefix("./"): path for name, path in program["members"].items()}
    entries = {}
    with tarfile.open(fileobj=archive, mode="r:*") as tar:
        for item in tar:
            if not missing:
                break
            path = missing.pop(item.name.removeprefix("./"), None)
            stream = tar.extractfile(item) if path and item.isreg() else None
            if path and stream:
                digest = install_stream(stream, path, int(program["mode"], 8))
                entries[path] = {"source": program["sha256"], "sha256": digest}
    if missing:
        raise Refused(f"{program['url']} has no member {', '.join(missing)}")
    return entries


def fetch(program: dict[str, Any], attempts: int, timeout: int) -> dict[str, Any]:
    """Place one program. Return path -> SHA-256 of its download (`source`) and of the file."""
    members, mode = program["members"] or {}, int(program["mode"], 8)
    folder = os.path.dirname(next(iter(members.values()), program["path"]))
    os.makedirs(folder, mode=0o755, exist_ok=True)
    try:
        if members:
            with tempfile.TemporaryFile(dir=folder) as archive:
                download_patiently(program, archive, attempts, timeout)
                archive.seek(0)
                return unpack(program, archive)
        with replacing(program["path"], mode) as out:
            download_patiently(program, out, attempts, timeout)
        return {program["path"]: {"source": program["sha256"], "sha256": program["sha256"]}}
    except (OSError, tarfile.TarError) as error:
        free = shutil.disk_usage(folder).free // 2**20
        raise Refused(f"{program['url']} can't be put into {folder} ({free} MiB free): {error}") from None


def fetch_all(programs: list[dict[str, Any]], attempts: int, timeout: int) -> tuple[dict[str, Any], list[str]]:
    """Return (manifest entries, reasons of failed downloads)."""
    entries: dict[str, Any] = {}
    reasons = []
    with concurrent.futures.ThreadPoolExecutor(max_workers=4) as pool:
        for job in concurrent.futures.as_completed(pool.submit(fetch, p, attempts, timeout) for p in programs):
            try:
                entries |= job.result()
            except Refused as error:
                reasons.append(str(error))
    return entries, reasons
