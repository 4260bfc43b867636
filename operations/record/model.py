"""The record of an operation: what it holds, and how it is told."""

from __future__ import annotations

from datetime import UTC, datetime
from enum import StrEnum

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from cluster import shared
from operations.record.holder import Holder
from operations.record.store import Kept, RecordStoreError

CURRENT = "operations/current.json"
HISTORY = "operations/history"
_VERSION = 1


class State(StrEnum):
    """running: somebody holds it, or died holding it. cut short: it ended, and has to be gone on with. over: free."""

    RUNNING = "running"
    CUT_SHORT = "cut short"
    OVER = "over"


class Step(BaseModel):
    model_config = ConfigDict(frozen=True)

    name: str
    at: datetime
    facts: dict[str, str] = {}


class Record(BaseModel):
    """An operation. run: the process that has it now, where a later one went on. heartbeat: by the holder's clock.

    Who goes on with it writes the fields that he knows: what a newer Menagerie must not lose raises the version.
    """

    model_config = ConfigDict(frozen=True)

    version: int = _VERSION
    id: str
    run: str
    cluster: str
    verb: str
    about: str
    repeatable: bool
    holder: Holder
    since: datetime
    heartbeat: datetime
    state: State = State.RUNNING
    steps: tuple[Step, ...] = ()
    result: str = ""
    error: str = ""
    ended: datetime | None = None

    @model_validator(mode="before")
    @classmethod
    def _is_readable(cls, said: object) -> object:
        return shared.readable("the record of an operation", said, _VERSION)

    @property
    def what(self) -> str:
        return f"{self.verb} {self.about}".strip()

    @property
    def command(self) -> str:
        """What goes on with it, or begins it anew."""
        return f"./menagerie {self.verb} {self.cluster} {self.about}".strip()

    @property
    def held_by(self) -> str:
        """``mia@ops-2 (pid 4711, since 14:02 UTC, "etcd restore main")``."""
        form = "%H:%M UTC" if self.since.date() == now().date() else "%Y-%m-%d %H:%M UTC"
        return f'{self.holder.who} (pid {self.holder.pid}, since {self.since.strftime(form)}, "{self.what}")'

    @property
    def key(self) -> str:
        """Its place in the history."""
        stamp = self.since.strftime("%Y%m%dT%H%M%SZ")
        return f"{HISTORY}/{stamp}-{self.verb.replace(' ', '-')}-{self.id}.json"

    def is_same_as(self, other: Record) -> bool:
        """Whether one goes on with the other."""
        return (self.verb, self.about) == (other.verb, other.about)

    def ending(self, error: BaseException | None) -> Record:
        """As it ends, well or by an error: with steps done and others left it is cut short, unless it may be left so."""
        half = error is not None and bool(self.steps) and not self.repeatable
        return self.model_copy(
            update={
                "state": State.CUT_SHORT if half else State.OVER,
                "result": "done" if error is None else "failed" if isinstance(error, Exception) else "interrupted",
                "error": "" if error is None else str(error) or type(error).__name__,
                "ended": now(),
            }
        )

    def to_bytes(self) -> bytes:
        return self.model_dump_json(indent=2).encode()


def parse(kept: Kept) -> Record:
    """Raises RecordStoreError for what is no record, and NewerDataError for one that a newer Menagerie wrote."""
    try:
        return Record.model_validate_json(kept.value)
    except ValidationError as error:
        where = ".".join(map(str, error.errors()[0]["loc"])) or "it"
        raise RecordStoreError(
            f"the object {CURRENT} is no record of an operation ({where}: {error.errors()[0]['msg']}). "
            "Delete it once you know that nobody works on the cluster"
        ) from None


def ago(seconds: float) -> str:
    """How long ago, in the largest unit that says something."""
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size or (unit == "min" and seconds >= size):
            return f"{seconds / size:.0f} {unit} ago"
    return f"{seconds:.0f} s ago"


def now() -> datetime:
    """To the second: people read it."""
    return datetime.now(UTC).replace(microsecond=0)
