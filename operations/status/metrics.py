"""Status of metrics-server: how many nodes have metrics, and why others have none.

Two things look like a reason and are none. A node that works may have a pending request for a certificate: one that was refused,
or a second one; kubelets ask again after 15 minutes. And a host that reboots fast stays Ready in the API, so the age of that condition
says nothing about how long its kubelet runs: the kubelet is asked.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from http import HTTPMethod, HTTPStatus
from typing import NamedTuple

from kubernetes import client

from clients.api_errors import ApiSilentError, ApiStatusError
from clients.objects import Object
from clients.rest import Rest, with_query
from clients.waiting import is_ready
from cluster.spec import Cluster
from components.control_plane.host.approver import NODE, SIGNER, pending
from components.control_plane.host.metrics_keys import API_SERVICE
from components.control_plane.metrics import EVERY_S, GROUP, VERSION
from operations.status import model
from operations.status.model import StatusItem, kubectl

YOUNG_S = 6 * EVERY_S
"""A kubelet may run, or its request may wait, for so long before it is a problem. Metrics need two answers after the approval."""
_NAMED = 3
ASKED = 5
"""At most so many kubelets are asked: each answers with hundreds of kilobytes."""
NODES = f"/apis/{GROUP}/{VERSION}/nodes"
REQUESTS = with_query(
    "/apis/certificates.k8s.io/v1/certificatesigningrequests", {"fieldSelector": f"spec.signerName={SIGNER}"}
)
_STARTED = re.compile(r"^process_start_time_seconds (\S+)$", re.MULTILINE)
_UNAVAILABLE = (HTTPStatus.NOT_FOUND, HTTPStatus.SERVICE_UNAVAILABLE)
_WAY_OUT = 'see docs/how-to/keys-kubelet-serving-ca.md, "When a request stays pending"'


def metrics(cluster: Cluster, connection: client.ApiClient, nodes: Sequence[client.V1Node]) -> Iterator[StatusItem]:
    """Yield the items. nodes: all Nodes in the API; those that are not Ready have lines of their own."""
    rest = Rest(connection, model.ANSWER_S)
    try:
        listed = rest.snapshot(NODES)
    except (ApiSilentError, ApiStatusError) as error:
        yield _no_metrics(cluster, error)
        return
    measured = {item["metadata"]["name"] for item in listed.items}
    ready = {node.metadata.name for node in nodes if is_ready(node)}
    silent = sorted(ready - measured)
    requests = _requests(rest.list(REQUESTS), {node.metadata.name for node in nodes})
    unapproved = {name: asked for name, asked in requests.items() if name in silent or len(asked) > 1}
    joining = [name for name, asked in unapproved.items() if (listed.at - asked[0].at).total_seconds() < YOUNG_S]
    others = [name for name in silent if name not in unapproved]
    with ThreadPoolExecutor(ASKED) as pool:
        asked_nodes = others[:ASKED]
        ages = dict(zip(asked_nodes, pool.map(lambda name: _age_s(rest, name, listed.at), asked_nodes), strict=True))
    young = sorted([*joining, *(name for name, age in ages.items() if isinstance(age, float) and age < YOUNG_S)])
    detail = f"{len(ready & measured)} of {len(ready)} Ready nodes have metrics"
    yield StatusItem("metrics", "nodes", True, "; ".join([detail, *_started(young)]))
    for name, asked in sorted(unapproved.items()):
        if name not in young:
            yield _unapproved(name, [request.name for request in asked], lacks=name in silent)
    for name in (each for each in others if each not in young):
        yield StatusItem("metrics", name, False, f"has no metrics: {_why(ages.get(name))}", _look(cluster, name))


def _no_metrics(cluster: Cluster, error: ApiSilentError | ApiStatusError) -> StatusItem:
    """Return the line of an API without metrics. It is silent for most of a minute after a node with one of its pods went down."""
    if isinstance(error, ApiSilentError):
        detail = f"does not answer in {model.ANSWER_S:.0f} s"
    elif error.status in _UNAVAILABLE:
        detail = f"answers {error.status} {error.reason}"
    else:
        raise error
    help_ = kubectl(cluster.name, f"get apiservice {API_SERVICE} -o yaml")
    return StatusItem("metrics", "API", False, f"{GROUP} {detail}", help_)


class Request(NamedTuple):
    """A request for a certificate that nobody has decided about. at: when it was made."""

    at: datetime
    name: str


def _requests(listed: Iterable[Object], known: Container[str]) -> Mapping[str, list[Request]]:
    """Return node -> its requests for serving certificates that nobody has decided about, the oldest first. known: names of
    nodes."""
    asked: dict[str, list[Request]] = {}
    for request in listed:
        name, metadata = str(request["spec"].get("username", "")).removeprefix(NODE), request["metadata"]
        if name in known and pending(dict(request)):
            made = Request(datetime.fromisoformat(metadata["creationTimestamp"]), metadata["name"])
            asked.setdefault(name, []).append(made)
    return {name: sorted(requests) for name, requests in asked.items()}


def _unapproved(name: str, asked: Sequence[str], *, lacks: bool) -> StatusItem:
    state = "has no metrics" if lacks else "has metrics until its certificate ends"
    count = f"{len(asked)} requests of its kubelet" if len(asked) > 1 else "a request of its kubelet"
    named = f"{', '.join(asked[:_NAMED])}{' …' if len(asked) > _NAMED else ''}"
    what = f"{count} for a serving certificate {'are' if len(asked) > 1 else 'is'} not approved"
    return StatusItem("metrics", name, False, f"{state}: {what}: {named}", _WAY_OUT)


def _age_s(rest: Rest, name: str, now: datetime) -> float | str:
    """Return for how long the kubelet of a node has run, by API servers' clocks, or why that is not known."""
    try:
        answer = rest.send(HTTPMethod.GET, f"/api/v1/nodes/{name}/proxy/metrics", accept="text/plain")
    except ApiSilentError as error:
        return f"its kubelet does not answer ({error.why})"
    started = _STARTED.search(answer.data.decode(errors="replace"))
    if answer.status != HTTPStatus.OK or not started:
        return f"its kubelet does not answer ({answer.status} {answer.reason})"
    return now.timestamp() - float(started[1])


def _why(age: float | str | None) -> str:
    if age is None:
        return f"not asked, as {ASKED} others were"
    return age if isinstance(age, str) else f"its kubelet answers API servers, and has run for {age / 60:.0f} min"


def _started(young: Sequence[str]) -> list[str]:
    return [f"{', '.join(young)}: the kubelet started less than {YOUNG_S} s ago, or joins"] if young else []


def _look(cluster: Cluster, name: str) -> str:
    return kubectl(cluster.name, f"-n kube-system logs -l k8s-app=metrics-server --prefix | grep {name}")
