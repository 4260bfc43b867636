"""audit-log: ships the API server's audit log to the cluster's bucket, for a log on a host dies with the host.

Once a minute, the lines that are new become an object of their own: at most the last minute is lost with a host. A name is
never used twice, and holds the SHA-256 of the lines, so a shipper that was killed puts the same object again under the same
name. Which file has been shipped how far is kept on disk. A file is known by the digest of its first line, whatever it is
called: kube-apiserver renames it and packs it. The API server keeps files on disk up to a bound of its own (flags
audit-log-max*): where the bucket is away for longer than they last, an object says how many bytes are missing.
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
"""An API server that logs nothing puts an empty object after so long, so that a silent one is a broken one."""
CHUNK = 8 << 20
BLOCK = 1000
"""Objects to a folder: a reader finds the newest without a list of all."""

Put = Callable[[str, bytes], bool]
_DAMAGED = (EOFError, gzip.BadGzipFile, zlib.error)
"""What reading a packed file raises that ends too early: of a full disk, or a host that lost its power."""


@dataclass(frozen=True)
class Segment:
    """A file of the log. key: digest of its first line. closed: nobody writes to it any more."""

    path: Path
    key: str
    closed: bool


@dataclass
class State:
    """files: key -> bytes shipped, bytes seen, and the file's name. pending: the object that is on its way."""

    boot: str = ""
    sequence: int = 0
    files: dict[str, tuple[int, int, str]] = field(default_factory=dict)
    pending: dict[str, Any] | None = None

    @classmethod
    def read(cls, path: Path) -> State:
        """An empty one where there is none, or none that can be read: then all lines that are left are shipped again."""
        try:
            known = cls(**json.loads(path.read_text()))
        except (OSError, ValueError, TypeError) as error:
            if not isinstance(error, FileNotFoundError):
                print(f"{path} can't be read, so all files are shipped from their beginning: {error}", flush=True)
            return cls()
        known.files = {key: (each[0], each[1], each[2]) for key, each in known.files.items()}
        return known

    def save(self, path: Path) -> None:
        """Durably. A full disk stops no shipping: what is in memory goes on to be right."""
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
    """What there is of the log: files that were rotated, oldest first, then the one that is written."""
    rotated = list(log.parent.glob(f"{log.stem}-*{log.suffix}"))
    plain = {path.name for path in rotated}
    # A packed file beside the plain one is not whole yet.
    packed = [path for path in log.parent.glob(f"{log.stem}-*{log.suffix}.gz") if path.name[:-3] not in plain]
    found = []
    for path in (*sorted((*rotated, *packed), key=lambda each: each.name), log):
        try:
            with _opened(path) as file:
                first = file.readline()
        except (FileNotFoundError, *_DAMAGED):
            continue
        if first.endswith(b"\n") or (first and path != log):
            found.append(Segment(path, _digest(first), path != log))
    return found


def chunks(segment: Segment, start: int) -> Iterator[tuple[int, bytes]]:
    """Whole lines from a byte on, and the byte where they end. Nothing where the file is another one by now."""
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
    """prefix: <cluster>/<host>. put: as `bucket.put`, with its settings."""

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
        """Ship all that is there. BucketError where the bucket does not take it; the next step goes on."""
        found = segments(self._log)
        self._note(found)
        if self._finish(found):
            for segment in found:
                self._read(segment)
        self._forget({segment.key for segment in found})
        if time.monotonic() - self._quiet_since >= QUIET_S:
            self._ship(b"")

    def _note(self, found: list[Segment]) -> None:
        """How much there is to ship, for the case that it goes before it is shipped."""
        for segment in found:
            shipped, seen, _ = self._state.files.get(segment.key, (0, 0, ""))
            try:
                size = 0 if segment.path.suffix == ".gz" else segment.path.stat().st_size
            except FileNotFoundError:
                size = 0
            self._state.files[segment.key] = (shipped, max(seen, size), segment.path.name)
        self._state.save(self._path)

    def _read(self, segment: Segment) -> None:
        try:
            for end, data in chunks(segment, self._state.files[segment.key][0]):
                self._ship(data, key=segment.key, end=end)
        except _DAMAGED as error:
            print(f"{segment.path.name} is damaged, and what follows in it is not shipped: {error}", flush=True)

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
        """The pending object. That it is there already is well: its name says what is in it."""
        state, pending = self._state, self._state.pending
        assert pending is not None
        self._put(pending["name"], gzip.compress(data, mtime=0))
        key = pending.get("key")
        if key:
            _, seen, name = state.files[key]
            state.files[key] = (pending["end"], max(seen, pending["end"]), name)
        state.pending = None
        state.save(self._path)
        self._quiet_since = time.monotonic()

    def _finish(self, found: list[Segment]) -> bool:
        """Put what a former step, or a run that was killed, did not bring to its end. False while its file is not seen."""
        pending = self._state.pending
        if pending is None:
            return True
        if "text" in pending:
            self._send(pending["text"].encode())
            return True
        segment = next((each for each in found if each.key == pending["key"]), None)
        if segment is None and pending["key"] not in self._missing:
            return False
        data = _part(segment, pending["start"], pending["end"]) if segment else b""
        if f"-{_digest(data)}." in pending["name"]:
            self._send(data)
        else:
            # The file is gone, of which `_forget` tells, or was changed: its number stays unused.
            self._state.pending = None
        return True

    def _forget(self, found: set[str]) -> None:
        """Files that are gone, in two steps, for one is not to be seen while it is packed. What they took along is told."""
        gone = set(self._state.files) - found
        for key in gone & self._missing:
            # Taken out before the gap is told of, and both are written at once: it is told of once.
            shipped, seen, name = self._state.files.pop(key)
            if seen > shipped:
                lost = {"kind": "Gap", "file": name, "lostBytes": seen - shipped, "noticed": _utc(self._now())}
                print(f"{name} was removed before it was shipped; {seen - shipped} bytes are lost", flush=True)
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
    """Until the host stops: the API server is stopped before, and its last lines are shipped."""
    stopped = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopped.set())
    settings = json.loads(Path(os.environ["CREDENTIALS_DIRECTORY"], "audit-log.json").read_text())
    prefix = f"{settings['cluster']}/{socket.gethostname()}"
    shipper, told = Shipper(prefix, lambda name, data: bucket.put(settings, name, data)), ""
    while True:
        last = stopped.is_set()
        try:
            shipper.step()
            told = ""
        except OSError as error:
            if str(error) != told:
                told = str(error)
                print(f"trying again: {error}", flush=True)
        if last:
            break
        stopped.wait(EVERY_S)


if __name__ == "__main__":
    main()
