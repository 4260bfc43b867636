"""What the ordinary CLI does not look at before it changes a cluster: Menagerie's records, and the release of API servers."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from clients.access import Access, NotBuiltError
from cluster.errors import MenagerieError
from cluster.spec import Cluster
from operations.record import RecordStoreError, refuse_unless_free
from operations.upgrade.guard import refuse_other_release
from stacks.plain import is_given

WITHOUT_RECORD = "MENAGERIE_WITHOUT_RECORD"
"""Variable equivalent to ``--without-record``, for one run."""

Tell = Callable[[str], None]


def refuse_or_warn(
    cluster: Cluster, outputs: Callable[[], dict[str, object]], environment: Mapping[str, str], warn: Tell | None = None
) -> None:
    """Raise MenagerieError as `menagerie up` does, if an operation holds the cluster or it runs another release.

    outputs: returns the stack's outputs before this run. warn: for a preview: gets the text instead, and nothing is written.
    Holds nothing: the records don't show this run to others.
    """
    try:
        access = _access(cluster, outputs())
        _refuse_held(cluster, access, environment, writes=warn is None)
        if access:
            refuse_other_release(cluster, access)
    except MenagerieError as error:
        if warn is None:
            raise
        warn(f"pulumi up would be refused now: {error}")


def _access(cluster: Cluster, outputs: dict[str, object]) -> Access | None:
    """Return the access to the cluster, None if it is not built."""
    try:
        return Access.from_stack(cluster.name, outputs)
    except NotBuiltError:
        return None


def _refuse_held(cluster: Cluster, access: Access | None, environment: Mapping[str, str], *, writes: bool) -> None:
    try:
        refuse_unless_free(cluster.name, access, writes=writes)
    except RecordStoreError as error:
        if is_given(WITHOUT_RECORD, environment):
            return
        raise RecordStoreError(
            f"{error}\n  Nothing was changed, because it is unknown whether an operation is running on {cluster.name}.\n"
            f"  if none is: {WITHOUT_RECORD}=1 pulumi up -s {cluster.name}"
        ) from None
