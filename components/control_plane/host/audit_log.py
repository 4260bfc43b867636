"""audit-log: ships the API server's audit log to the cluster's bucket, because a log on a host is lost with the host.

Once a minute, it puts the new lines as one object: at most the last minute is lost with a host. An object's name is
unique and has the SHA-256 of its lines, so a shipper that was killed puts the same object again under the same name.
A state on disk records how much of each file is shipped. It knows a file by the digest of its first line, because
kube-apiserver renames and compresses files. The API server limits the files on disk (flags audit-log-max*): if the
bucket is unavailable until files are lost, an object says how many bytes are missing.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import signal
import socket
import threading
import time
import zlib
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any, Callable, Iterator

from . import bucket

LOG = Path("/var/log/kubernetes/audit/audit.log")
STATE = Path("/var/lib/audit-log/state.json")
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
EVERY_S = 60.0
QUIET_S = 300.0
"""Seconds without lines after which an empty object is put: a host that puts none is broken."""
CHUNK = 8 << 20
BLOCK = 1000
"""Objects in a folder: a reader finds the newest without listing all."""

Put = Callable[[str, bytes], bool]
_DAMAGED = (EOFError, gzip.BadGzipFile, zlib.error)
"""Errors of reading a truncated compressed file, after a full disk or a power failure."""


@dataclass(frozen=True)
class Segment:
    """A file of the log. key: digest of its first line. closed: it is no longer written to."""

    path: Path
    key: str
    closed: bool


@dataclass
class State:
    """files: key -> bytes shipped, known size in bytes, and the file's name. pending: the object that is being put."""

    boot: str = ""
    sequence: int = 0
    files: dict[str, tuple[int, int, str]] = field(default_factory=dict)
    pending: dict[str, Any] | None = None

    @classmethod
    def read(cls, path: Path) -> State:
        """Read the state. If it is missing or unreadable, return an empty one: all lines on disk are shipped again."""
        try:
            known = cls(**json.loads(path.read_text()))
        except (OSError, ValueError, TypeError) as error:
            if not isinstance(error, FileNotFoundError):
                print(f"{path} can't be read, so all files are shipped from the start: {error}", flush=True)
            return cls()
        known.files = {key: (each[0], each[1], each[2]) for key, each in known.files.items()}
        return known

    def save(self, path: Path) -> None:
        """Write the state durably. A full disk does not stop shipping: the state in memory stays right."""
        new = path.with_suffix(".new")
        try:
            with new.open("w") as file:
                json.dump(asdict(self), file)
                file.flush()
                os.fsync(file.fileno())
            new.replace(path)
        except OSError as error:
            print(f"{path} can't be written: {error}", flush=True)


def segments(log: Path) -> list[Segment]:
    """Return the log's files: rotated ones, oldest first, then the current one."""
    rotated = list(log.parent.glob(f"{log.stem}-*{log.suffix}"))
    plain = {path.name for path in rotated}
    # While the plain file exists, the compressed one is incomplete.
    packed = [path for path in log.parent.glob(f"{log.stem}-*{log.suffix}.gz") if path.name[:-3] not in plain]
    files = []
    for path in (*sorted((*rotated, *packed), key=lambda each: each.name), log):
        try:
            with _opened(path) as file:
                first = file.readline()
        except (FileNotFoundError, *_DAMAGED):
            continue
        if first.endswith(b"\n") or (first and path != log):
            files.append(Segment(path, _digest(first), path != log))
    return files


def chunks(segment: Segment, start: int) -> Iterator[tuple[int, bytes]]:
    """Yield (end, whole lines) from byte `start` on. Yield nothing if the path now holds another file."""
    try:
        file = _opened(segment.path)
    except FileNotFoundError:
        return
    with file:
        if _digest(file.readline()) != segment.key:
            return
        file.seek(start)
        for data in iter(lambda: file.read(CHUNK), b""):
            data += file.readline()
            end, is_last = start + len(data), not data.endswith(b"\n")
            if is_last and segment.closed:
                data += b"\n"
            elif is_last:
                data = data[: data.rfind(b"\n") + 1]
                end = start + len(data)
            if data:
                yield end, data
            if is_last:
                return
            start = end


class Shipper:
    """prefix: <cluster>/<host>. put: `bucket.put` with its settings."""

    def __init__(
        self,
        prefix: str,
        put: Put,
        log: Path = LOG,
        state: Path = STATE,
        boot_id: str | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._prefix, self._put, self._log, self._path, self._now = prefix, put, log, state, now
        self._state = State.read(state)
        self._missing: set[str] = set()
        self._quiet_since = time.monotonic()
        boot = (boot_id or BOOT_ID.read_text())[:8]
        if not self._state.boot.endswith(f"-{boot}"):
            self._state.boot = f"{_utc(now())}-{boot}"

    def step(self) -> None:
        """Ship all new lines. BucketError if the bucket refuses them; the next step resumes."""
        files = segments(self._log)
        self._note(files)
        if self._finish(files):
            for segment in files:
                self._read(segment)
        self._forget({segment.key for segment in files})
        if time.monotonic() - self._quiet_since >= QUIET_S:
            self._ship(b"")

    def _note(self, files: list[Segment]) -> None:
        """Record how much there is to ship, in case a file is removed before it is shipped."""
        for segment in files:
            shipped, known_size, _ = self._state.files.get(segment.key, (0, 0, ""))
            try:
                size = 0 if segment.path.suffix == ".gz" else segment.path.stat().st_size
            except FileNotFoundError:
                size = 0
            self._state.files[segment.key] = (shipped, max(known_size, size), segment.path.name)
        self._state.save(self._path)

    def _read(self, segment: Segment) -> None:
        try:
            for end, data in chunks(segment, self._state.files[segment.key][0]):
                self._ship(data, key=segment.key, end=end)
        except _DAMAGED as error:
            print(f"{segment.path.name} is damaged, and the rest of it is not shipped: {error}", flush=True)

    def _ship(self, data: bytes, *, key: str = "", end: int = 0, kind: str = "") -> None:
        state = self._state
        state.sequence += 1
        block = f"{state.sequence // BLOCK:05}"
        word = f"{state.sequence:08}-{_utc(self._now())}-{_digest(data)}{kind}"
        start = state.files[key][0] if key else 0
        state.pending = {
            "name": f"{self._prefix}/{state.boot}/{block}/{word}.jsonl.gz",
            **({"key": key, "start": start, "end": end} if key else {"text": data.decode()}),
        }
        state.save(self._path)
        self._send(data)

    def _send(self, data: bytes) -> None:
        """Put the pending object. An existing one is fine: its name identifies its content."""
        state, pending = self._state, self._state.pending
        assert pending is not None
        self._put(pending["name"], gzip.compress(data, mtime=0))
        key = pending.get("key")
        if key:
            _, known_size, name = state.files[key]
            state.files[key] = (pending["end"], max(known_size, pending["end"]), name)
        state.pending = None
        state.save(self._path)
        self._quiet_since = time.monotonic()

    def _finish(self, files: list[Segment]) -> bool:
        """Put what a failed step or killed run left pending. Return False if its file is missing for the first time."""
        pending = self._state.pending
        if pending is None:
            return True
        if "text" in pending:
            self._send(pending["text"].encode())
            return True
        segment = next((each for each in files if each.key == pending["key"]), None)
        if segment is None and pending["key"] not in self._missing:
            return False
        data = _part(segment, pending["start"], pending["end"]) if segment else b""
        if f"-{_digest(data)}." in pending["name"]:
            self._send(data)
        else:
            # The file is gone, which `_forget` reports, or has changed: the object's number stays unused.
            self._state.pending = None
        return True

    def _forget(self, keys: set[str]) -> None:
        """Find lost files in two rounds: a file is invisible while it is compressed. Report the bytes that are lost."""
        gone = set(self._state.files) - keys
        for key in gone & self._missing:
            # Removed before the gap is reported; both are saved together, so each gap is reported once.
            shipped, known_size, name = self._state.files.pop(key)
            if known_size > shipped:
                lost = {"kind": "Gap", "file": name, "lostBytes": known_size - shipped, "noticed": _utc(self._now())}
                print(f"{name} was removed before it was shipped; {known_size - shipped} bytes are lost", flush=True)
                self._ship(json.dumps(lost).encode() + b"\n", kind="-gap")
        self._missing = gone - self._missing


def _part(segment: Segment, start: int, end: int) -> bytes:
    try:
        with _opened(segment.path) as file:
            file.seek(start)
            data = file.read(end - start)
    except FileNotFoundError:
        return b""
    return data if data.endswith(b"\n") else data + b"\n"


def _opened(path: Path) -> IO[bytes]:
    return gzip.open(path) if path.suffix == ".gz" else path.open("rb")  # type: ignore[return-value]


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:32]


def _utc(seconds: float) -> str:
    return time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(seconds))


def main() -> None:
    """Run until the host stops. The API server stops first, so its last lines are shipped."""
    stopped = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopped.set())
    settings = json.loads(Path(os.environ["CREDENTIALS_DIRECTORY"], "audit-log.json").read_text())
    prefix = f"{settings['cluster']}/{socket.gethostname()}"
    shipper, reported = Shipper(prefix, lambda name, data: bucket.put(settings, name, data)), ""
    while True:
        last = stopped.is_set()
        try:
            shipper.step()
            reported = ""
        except OSError as error:
            if str(error) != reported:
                reported = str(error)
                print(f"trying again: {error}", flush=True)
        if last:
            break
        stopped.wait(EVERY_S)


if __name__ == "__main__":
    main()
