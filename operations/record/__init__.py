"""Lock that allows one operation on a cluster at a time, and the journal of operations.

The record is one object. It is never deleted but marked as over, because stores support conditional writes but not
conditional deletes. Each write names the version that was read: if two runs start at once, only one succeeds, and a run that
was taken over learns it with its next write. The heartbeat shows whether a holder on another machine is alive, by the
store's own clock.
"""

from operations.record.errors import InUseError, TakenOverError
from operations.record.hold import keep, one_operation, share
from operations.record.ledger import Ledger, read_ledger, refuse_unless_free, unlock
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
    "refuse_unless_free",
    "share",
    "unlock",
]
