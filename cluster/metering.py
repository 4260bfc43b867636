"""Settings of a spec for the ledger of who used what."""

from __future__ import annotations

from typing import Any

from pydantic import model_validator

from cluster.model import Model
from cluster.quantities import DurationMs, Name, refuse
from cluster.references import reference_or


class BucketKey(Model):
    """Where the key of the cluster's bucket is stored, which is never a file of the inventory."""

    secret: Name
    """Name of the secret in the stack's configuration, as in: menagerie secret CLUSTER <name>."""

    @model_validator(mode="before")
    @classmethod
    def _is_no_key(cls, value: Any) -> Any:
        message = "may contain the key itself; it must be a reference to a secret"
        hint = "store the key with ./menagerie secret <cluster> ledger, and write {secret: ledger}"
        return reference_or(refuse("MET-002", message, hint), value)


class Metering(Model):
    """A ledger of what teams used, kept by a controller in the cluster."""

    key: BucketKey | None = None
    """Reference to a key with which the controller reads and writes objects below ledger/ in the cluster's bucket of records.
    A lab has its own; every cloud needs one."""
    running_every: DurationMs = 60 * 60_000
    """How often the day that has not ended is counted, for `bill --today`: 1m to 1d. A count of 7,500 nodes takes half a minute."""


def secret_names(metering: Metering | None) -> tuple[str, ...]:
    """Return the names of the secrets that the stack's configuration must have for the ledger."""
    return (metering.key.secret,) if metering and metering.key else ()
