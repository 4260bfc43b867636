"""Reads the cluster that this process runs in, with the ServiceAccount of its pod: what the API says, and the days of the ledger.

The rest needs an operator's credentials: members of etcd, certificates, tunnels, backups, and the record of operations.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import urllib3
from kubernetes.client.exceptions import ApiException

from cluster.errors import FailedError, MenagerieError
from cluster.load import load_cluster
from cluster.spec import Cluster
from components.drawing.layout import draw
from controllers.autoscaler.look import Fixed
from controllers.autoscaler.observed import observe_with
from controllers.bookkeeping import bucket
from controllers.program.loop import words
from controllers.tenancy.sync.run import ApiAccess
from controllers.web.facts import Capacity, Spec
from controllers.web.kept import NO_METERING, DayKeeper, Kept
from controllers.web.reading import capacity_of
from operations.record.ledger import Ledger
from operations.status.api import api, versions_of
from operations.status.model import Status, StatusItem

ENDPOINT = "https://kubernetes.default.svc"
"""The API's name in every cluster ("Accessing the Kubernetes API from a Pod")."""
GROWTH = "how far pools in the region can grow is not known here: a pod has no login in the cloud"


class Inside:
    """Reads one cluster. spec: path of its cluster.yaml. secrets: folder with the files of the ledger's bucket."""

    def __init__(self, spec: Path, secrets: Path, access: ApiAccess) -> None:
        self._path, self._secrets, self._access = spec, secrets, access
        self._lock = threading.Lock()
        self._spec: Spec | None = None
        self._days: DayKeeper | None = None

    def spec(self) -> Spec:
        """Return the model with its drawing. After a change of the spec, `controllers apply` replaces the pods."""
        with self._lock:
            if self._spec is None:
                cluster = load_cluster(self._path)
                self._spec = Spec(cluster, draw(cluster))
            return self._spec

    def status(self) -> Status:
        cluster = self.spec().cluster
        return Status(cluster.name, ENDPOINT, tuple(self._items(cluster)))

    def capacity(self) -> Capacity:
        cluster = self.spec().cluster
        made = capacity_of(cluster, observe_with(cluster, self._access.api, Fixed()))
        more = (GROWTH,) if cluster.spec.autoscaler else ()
        return Capacity(made.rows, made.waits, made.nodes, (*made.notices, *more))

    def operations(self) -> Ledger:
        name = self.spec().cluster.name
        text = f"no controller may read the record of operations; ./menagerie status {name} operations shows them"
        raise FailedError(text, code="no-record")

    def bills(self, so_far: Callable[[Kept], None]) -> Kept | None:
        """Return the days of the ledger. The bucket's key is read again each time: it may have been replaced."""
        cluster = self.spec().cluster
        if self._days is None:
            self._days = DayKeeper(cluster.name, time.time)
        if cluster.spec.metering is None:
            return self._days.kept(lacks=NO_METERING)
        return self._days.read(bucket.opened(bucket.read(self._secrets), _never), so_far)

    def _items(self, cluster: Cluster) -> Iterator[StatusItem]:
        connection = self._access.api(once=True)
        try:
            listed = yield from api(connection, cluster)
            yield from versions_of(connection, cluster, listed)
        except (ApiException, urllib3.exceptions.HTTPError) as error:
            yield StatusItem("api", "API", False, words(error), f"./menagerie status {cluster.name}")


def explain(error: Exception) -> str:
    """Return an error for the page. What nobody foresaw is there as well: it must not hide the cluster."""
    if isinstance(error, (ApiException, urllib3.exceptions.HTTPError, MenagerieError)):
        return words(error)
    return f"unexpected {type(error).__name__}: {error}"


def _never() -> None:
    raise FailedError("pages never write into the ledger", code="ledger")
