"""Made-up clusters as readers would have read them, and requests to the application without a network."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address

from cluster.pools import Host
from cluster.spec import Cluster
from components.drawing.layout import draw
from components.drawing.live import Health
from controllers.autoscaler.capacity import Row
from controllers.autoscaler.waits import Wait
from controllers.planner import Fate
from controllers.web.app import application
from controllers.web.facts import Capacity, ClusterFacts, NodeState, Site, Spec
from controllers.web.guards import LinkGuard
from controllers.web.kept import Kept, since_of
from controllers.web.live import drawn
from controllers.web.parts import Part
from operations.record.holder import Holder
from operations.record.ledger import Ledger
from operations.record.model import OperationState, Record, Step
from operations.status.model import Status, StatusItem

NOW_S = 1_800_000_000.0
AT = datetime.fromtimestamp(NOW_S, UTC)
SECRET = "secret-of-this-start"
PORT = 4711
HOST = f"127.0.0.1:{PORT}"
LARGE = 7_500
_RACK = 30


@dataclass(frozen=True)
class Answer:
    """The answer to a request. headers: by lower-case names; several of one name are joined by newlines."""

    status: int
    headers: Mapping[str, str]
    text: str


def app(*clusters: ClusterFacts, guard=None):
    return application(Site(lambda: clusters, lambda: NOW_S), guard or LinkGuard("127.0.0.1", PORT, SECRET))


def ask(asked, path: str, *, method: str = "GET", headers: Sequence[tuple[str, str]] = (("Host", HOST),)) -> Answer:
    """Send a request to the application."""
    return asyncio.run(_ask(asked, path, method, headers))


async def _ask(asked, path: str, method: str, headers: Sequence[tuple[str, str]]) -> Answer:
    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method, "scheme": "http",
        "path": path, "raw_path": path.encode(), "root_path": "", "query_string": b"",
        "headers": [(name.lower().encode(), value.encode()) for name, value in headers],
        "client": ("127.0.0.1", 1), "server": ("127.0.0.1", PORT),
    }  # fmt: skip
    messages = []

    async def receive():
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message):
        messages.append(message)

    await asked(scope, receive, send)
    names: dict[str, str] = {}
    for name, value in messages[0]["headers"]:
        key = name.decode().lower()
        names[key] = f"{names[key]}\n{value.decode()}" if key in names else value.decode()
    return Answer(messages[0]["status"], names, b"".join(each.get("body", b"") for each in messages[1:]).decode())


def page(path: str, *clusters: ClusterFacts) -> str:
    """Return the text of a page."""
    answer = ask(app(*clusters), f"/{SECRET}/{path}")
    assert answer.status == 200, answer.text
    return answer.text


def read(value):
    """Return a part that was read five seconds ago."""
    return Part(value, NOW_S - 5)


def facts(cluster: Cluster, **parts) -> ClusterFacts:
    """Return a healthy cluster, except for these parts. Its ledger has no day; `tests.web.bills` makes some."""
    healthy = {
        "spec": read(Spec(cluster, draw(cluster))),
        "status": read(status(cluster.name)),
        "capacity": read(capacity(cluster)),
        "operations": read(Ledger("the bucket", None, False, 0.0, (record("up", 1), record("upgrade", 2)))),
        "bills": read(Kept(since_of(AT.date()), lacks="its ledger has no day yet")),
    }
    own = ClusterFacts(cluster.name, **{**healthy, **parts})
    nodes = own.capacity.value.nodes if own.capacity.value else None
    return replace(own, drawn=drawn(own.spec.value, own.status.value, nodes) if own.spec.value else None)


def status(name: str, *more: StatusItem) -> Status:
    items = (
        StatusItem("API servers", "api-1", True, "10.0.0.1, load balancer says UP"),
        StatusItem("etcds", "etcd-main-1", True, "member of main, healthy"),
        StatusItem("etcds", "quorum of main", True, "3 of 3 members respond"),
        StatusItem("api", "readyz", True, "40 checks pass"),
    )
    return Status(name, "https://10.0.0.1:6443", (*items, *more))


def capacity(cluster: Cluster, *, bad: Mapping[str, tuple[Health, str]] | None = None, waits=()) -> Capacity:
    """Return the capacity of a cluster whose machines have all joined. bad: node -> its state, if it is not Ready."""
    changed = bad or {}
    nodes = tuple(
        NodeState(host.name, pool, *changed.get(host.name, (Health.HEALTHY, "Ready")))
        for pool, host in cluster.host_list()
    )
    rows = tuple(
        Row(cluster.name, pool, "h100", 3, 1, 24, 8, 2, 16, 4, 32, 98.32, False, 300) for pool in cluster.spec.pools
    )
    return Capacity(rows, tuple(waits), nodes)


def wait(reason: str, *pods: str, fate: Fate = Fate.WAITING) -> Wait:
    return Wait(fate, reason, pods, NOW_S - 600)


def record(verb: str, number: int, **more) -> Record:
    """Return an operation that has ended."""
    began = AT - timedelta(hours=number)
    values = {
        "id": f"id{number}", "run": "r", "cluster": "lab", "verb": verb, "about": "", "repeatable": True,
        "holder": Holder(who="mia@ops-2", pid=4711, started=1, machine="m"), "since": began, "heartbeat": began,
        "state": OperationState.OVER, "steps": (Step(name="hosts", at=began, facts={"hosts": "3"}),), "result": "done",
        "ended": began + timedelta(seconds=90),
    }  # fmt: skip
    return Record(**{**values, **more})


def large(build) -> Cluster:
    """Return a cluster of 7,500 machines in 250 racks. build: the fixture."""
    names = [f"row-{number:03}" for number in range(LARGE // _RACK)]
    racks = {name: f"10.{96 + number // 200}.{number % 200}.0/24" for number, name in enumerate(names)}
    hosts = tuple(
        Host.model_construct(
            name=f"gpu-{number:04}",
            rack=names[number // _RACK],
            address=IPv4Address(f"10.{96 + number // _RACK // 200}.{number // _RACK % 200}.{number % _RACK + 10}"),
            links={},
        )
        for number in range(LARGE)
    )
    return build({"sites": {"onprem": {"racks": racks}}}, {"workers": hosts})
