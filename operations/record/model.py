"""The record of an operation, and its texts for people."""

from __future__ import annotations

from datetime import UTC, datetime
from enum import StrEnum

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from cluster import shared
from operations.record.holder import Holder
from operations.record.store import RecordStoreError, StoredObject

CURRENT = "operations/current.json"
HISTORY = "operations/history"
_VERSION = 1


class OperationState(StrEnum):
    """running: a process holds it, or died holding it. `cut short`: it was interrupted and must be resumed. over: released."""

    RUNNING = "running"
    CUT_SHORT = "cut short"
    OVER = "over"


class Step(BaseModel):
    model_config = ConfigDict(frozen=True)

    name: str
    at: datetime
    facts: dict[str, str] = {}


class Record(BaseModel):
    """An operation. run: identifies the process that holds it now, which may have resumed it. heartbeat: by its clock.

    options: those of the command line that do not decide whether a run resumes another; `about` has the others. toolkit: the
    release and the commit of the Menagerie that runs it. Both are empty in records of older releases.
    A process that resumes it writes only the fields it knows: a field that must not get lost needs a higher version.
    """

    model_config = ConfigDict(frozen=True)

    version: int = _VERSION
    id: str
    run: str
    cluster: str
    verb: str
    about: str
    options: str = ""
    toolkit: str = ""
    repeatable: bool
    holder: Holder
    since: datetime
    heartbeat: datetime
    state: OperationState = OperationState.RUNNING
    steps: tuple[Step, ...] = ()
    result: str = ""
    error: str = ""
    ended: datetime | None = None

    @model_validator(mode="before")
    @classmethod
    def _is_readable(cls, data: object) -> object:
        return shared.readable("the record of an operation", data, _VERSION)

    @property
    def what(self) -> str:
        return f"{self.verb} {self.about}".strip()

    @property
    def command(self) -> str:
        """The command that resumes or repeats it."""
        return f"./menagerie {self.verb} {self.cluster} {self.about}".strip()

    @property
    def held_by(self) -> str:
        """``mia@ops-2 (pid 4711, since 14:02 UTC, "etcd restore main")``."""
        form = "%H:%M UTC" if self.since.date() == now().date() else "%Y-%m-%d %H:%M UTC"
        return f'{self.holder.who} (pid {self.holder.pid}, since {self.since.strftime(form)}, "{self.what}")'

    @property
    def key(self) -> str:
        """Its key in the history."""
        stamp = self.since.strftime("%Y%m%dT%H%M%SZ")
        return f"{HISTORY}/{stamp}-{self.verb.replace(' ', '-')}-{self.id}.json"

    def is_same_as(self, other: Record) -> bool:
        """Return whether one resumes the other."""
        return (self.verb, self.about) == (other.verb, other.about)

    def ending(self, error: BaseException | None) -> Record:
        """Return the record at its end. After an error with completed steps it is `cut short`, unless it is repeatable."""
        half = error is not None and bool(self.steps) and not self.repeatable
        return self.model_copy(
            update={
                "state": OperationState.CUT_SHORT if half else OperationState.OVER,
                "result": "done" if error is None else "failed" if isinstance(error, Exception) else "interrupted",
                "error": "" if error is None else str(error) or type(error).__name__,
                "ended": now(),
            }
        )

    def to_bytes(self) -> bytes:
        return self.model_dump_json(indent=2).encode()


def parse(kept: StoredObject) -> Record:
    """Parse a record. Raises RecordStoreError if it is invalid, NewerDataError if a newer Menagerie wrote it."""
    try:
        return Record.model_validate_json(kept.value)
    except ValidationError as error:
        where = ".".join(map(str, error.errors()[0]["loc"])) or "it"
        raise RecordStoreError(
            f"the object {CURRENT} is not a valid record of an operation ({where}: {error.errors()[0]['msg']}). "
            "Delete it if you are sure that no operation is running on the cluster"
        ) from None


RESULTS = {OperationState.CUT_SHORT.value: "interrupted"}
"""Result in a record -> the word to show, if it is another."""


def ago(seconds: float) -> str:
    """Format how long ago something was, in the largest useful unit."""
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size or (unit == "min" and seconds >= size):
            return f"{seconds / size:.0f} {unit} ago"
    return f"{seconds:.0f} s ago"


def now() -> datetime:
    """Return the current time in whole seconds, because people read it."""
    return datetime.now(UTC).replace(microsecond=0)
