"""The lock that lets one operation run on a cluster at a time, and the journal of operations.

The record is one object. It is never deleted but marked as over, for stores can write on a condition and not delete on one.
Whoever writes it names the version that he has read, so of two who begin at once one does, and a run that was taken over
learns of it with its next write. Whether a holder on another machine lives, its heartbeat tells, by the store's own clock.
"""

from operations.record.errors import InUseError, TakenOverError
from operations.record.hold import keep, one_operation, share
from operations.record.ledger import Ledger, read_ledger, unlock
from operations.record.operation import Operation
from operations.record.store import RecordStoreError

__all__ = [
    "InUseError",
    "Ledger",
    "Operation",
    "RecordStoreError",
    "TakenOverError",
    "keep",
    "one_operation",
    "read_ledger",
    "share",
    "unlock",
]
