"""Ansible module: programs by URL and checksum, out of an archive or bare, fetched side by side."""

from __future__ import annotations

DOCUMENTATION = r"""
module: host_programs
short_description: Fetches programs by URL and checksum
description:
  - Fetches what is missing or differs, checks the SHA-256 of the download, and replaces the program in one step.
  - Remembers in I(manifest) which archive each unpacked program came from, and hashes every program on each run.
options:
  programs:
    description: The programs to fetch.
    type: list
    elements: dict
    required: true
    suboptions:
      url: {description: Where it is downloaded from., type: str, required: true}
      sha256: {description: SHA-256 of the download in hex., type: str, required: true}
      path: {description: Where a bare program goes., type: path}
      members: {description: "Path in the .tar.gz archive: path on the host.", type: dict}
      mode: {description: "Octal, quoted.", type: str, default: "0755"}
  manifest:
    description: Where the module remembers what it unpacked.
    type: path
    default: /var/lib/menagerie/programs.json
  attempts:
    description: Attempts for each download, with a growing pause between them.
    type: int
    default: 4
  timeout:
    description: Seconds without a byte after which an attempt counts as failed.
    type: int
    default: 30
author: [Menagerie]
"""

EXAMPLES = r"""
- name: Runc is here
  host_programs:
    programs: [{url: "https://mirror.example/runc.amd64", sha256: "0f...", path: /usr/local/sbin/runc}]
"""

RETURN = r"""
paths: {description: Programs that were replaced., type: list, elements: str, returned: always}
"""

import concurrent.futures
import hashlib
import http.client
import json
import os
import shutil
import tarfile
import tempfile
import time
import urllib.error
import urllib.request
from typing import IO, Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.menagerie_host import FileState, place, read

CHUNK = 1 << 20


class Refused(Exception):
    """Why a program could not be put in place."""


def file_sha256(path: str) -> str | None:
    """The hash of a regular file, in hex; None where there is none."""
    if os.path.islink(path) or not os.path.isfile(path):
        return None
    digest = hashlib.sha256()
    with open(path, "rb") as handle:
        while chunk := handle.read(CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def targets(program: dict[str, Any]) -> list[str]:
    return list((program["members"] or {}).values()) or [program["path"]]


def is_current(program: dict[str, Any], manifest: dict[str, Any]) -> bool:
    """True when every file of the program is the one that its download holds."""
    mode = int(program["mode"], 8)
    for path in targets(program):
        found = file_sha256(path)
        known = manifest.get(path, {})
        expected = known.get("sha256") if known.get("source") == program["sha256"] else None
        if found is None or found != (program["sha256"] if program["path"] else expected):
            return False
        if os.stat(path).st_mode & 0o7777 != mode:
            return False
    return True


def download(program: dict[str, Any], into: IO[bytes], timeout: int) -> None:
    """Raises Refused when the bytes are not the ones expected, OSError when the network failed."""
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
    """Copy beside `path`, then rename: a running program keeps its old file. Returns the SHA-256."""
    os.makedirs(os.path.dirname(path), mode=0o755, exist_ok=True)
    handle, partial = tempfile.mkstemp(prefix=".menagerie-", dir=os.path.dirname(path))
    digest = hashlib.sha256()
    try:
        with os.fdopen(handle, "wb") as out:
            while chunk := stream.read(CHUNK):
                digest.update(chunk)
                out.write(chunk)
            os.fchmod(out.fileno(), mode)
            out.flush()
            os.fsync(out.fileno())
        os.rename(partial, path)
    except BaseException:
        os.unlink(partial)
        raise
    return digest.hexdigest()


def unpack(program: dict[str, Any], archive: IO[bytes]) -> dict[str, Any]:
    """Install the wanted members. Names are compared without a leading "./", which upstreams differ in."""
    wanted = {name.removeprefix("./"): path for name, path in program["members"].items()}
    entries = {}
    with tarfile.open(fileobj=archive, mode="r:*") as tar:
        for item in tar:
            path = wanted.pop(item.name.removeprefix("./"), None)
            stream = tar.extractfile(item) if path and item.isreg() else None
            if path and stream:
                digest = install_stream(stream, path, int(program["mode"], 8))
                entries[path] = {"source": program["sha256"], "sha256": digest}
    if wanted:
        raise Refused(f"{program['url']} has no member {', '.join(wanted)}")
    return entries


def fetch(program: dict[str, Any], attempts: int, timeout: int) -> dict[str, Any]:
    """Put one program in place; returns what the manifest shall remember."""
    folder = os.path.dirname(targets(program)[0])
    os.makedirs(folder, mode=0o755, exist_ok=True)
    try:
        with tempfile.TemporaryFile(dir=folder) as partial:
            download_patiently(program, partial, attempts, timeout)
            partial.seek(0)
            if program["members"]:
                return unpack(program, partial)
            install_stream(partial, program["path"], int(program["mode"], 8))
            return {}
    except (OSError, tarfile.TarError) as error:
        free = shutil.disk_usage(folder).free // 2**20
        raise Refused(f"{program['url']} can't be put into {folder} ({free} MiB free): {error}") from None


def fetch_all(programs: list[dict[str, Any]], attempts: int, timeout: int) -> tuple[dict[str, Any], list[str]]:
    """(manifest entries, reasons of those that failed)."""
    entries: dict[str, Any] = {}
    reasons = []
    with concurrent.futures.ThreadPoolExecutor(max_workers=4) as pool:
        for job in concurrent.futures.as_completed(pool.submit(fetch, p, attempts, timeout) for p in programs):
            try:
                entries |= job.result()
            except Refused as error:
                reasons.append(str(error))
    return entries, reasons


def load_manifest(path: str) -> dict[str, Any]:
    """What earlier runs unpacked; nothing where the file is missing or damaged (then all is fetched again)."""
    try:
        return dict(json.loads(read(path).content or b"{}"))
    except ValueError:
        return {}


def main() -> None:
    program_spec = {
        "url": {"type": "str", "required": True},
        "sha256": {"type": "str", "required": True},
        "path": {"type": "path"},
        "members": {"type": "dict"},
        "mode": {"type": "str", "default": "0755"},
    }
    module = AnsibleModule(
        argument_spec={
            "programs": {
                "type": "list",
                "elements": "dict",
                "required": True,
                "options": program_spec,
                "mutually_exclusive": [("path", "members")],
                "required_one_of": [("path", "members")],
            },
            "manifest": {"type": "path", "default": "/var/lib/menagerie/programs.json"},
            "attempts": {"type": "int", "default": 4},
            "timeout": {"type": "int", "default": 30},
        },
        supports_check_mode=True,
    )
    manifest = load_manifest(module.params["manifest"])
    pending = [p for p in module.params["programs"] if not is_current(p, manifest)]
    paths = sorted(path for program in pending for path in targets(program))
    reasons: list[str] = []
    if pending and not module.check_mode:
        entries, reasons = fetch_all(pending, module.params["attempts"], module.params["timeout"])
        if entries:
            text = json.dumps(manifest | entries, indent=1, sort_keys=True) + "\n"
            place(module.params["manifest"], FileState(text.encode(), 0o644, os.geteuid(), os.getegid()))
    if reasons:
        module.fail_json(msg="; ".join(sorted(reasons)), paths=paths)
    diff = {"before": "", "after": "".join(f"{p['url']} sha256:{p['sha256']}\n" for p in pending)}
    module.exit_json(changed=bool(pending), paths=paths, diff=diff)


if __name__ == "__main__":
    main()
