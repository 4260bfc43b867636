"""``python -m tests.bench.pages``: time of each page of `menagerie web` over HTTP, of a cluster with 7,500 nodes."""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from datetime import UTC, date, datetime, timedelta

from cluster.load import load_cluster
from cluster.project import ROOT
from cluster.spec import Cluster
from components.drawing.layout import draw
from components.drawing.live import Health
from controllers.autoscaler.capacity import Row
from controllers.autoscaler.waits import Wait
from controllers.metering.day import Day, bounds
from controllers.metering.facts import Use
from controllers.metering.ledger import HOUR_S, MICRO
from controllers.planner import Fate
from controllers.web.app import application
from controllers.web.facts import Capacity, ClusterFacts, NodeState, Site, Spec
from controllers.web.guards import LinkGuard
from controllers.web.kept import DayKeeper, Kept, since_of
from controllers.web.live import drawn
from controllers.web.parts import Part
from controllers.web.serving import listening, serving
from operations.record.ledger import Ledger
from operations.status.model import Status, StatusItem
from tests.bench import alone
from tests.bench.figures import Figure

AIM_S = 1.0
NODES, ROUNDS, WAITS = 7_500, 20, 3_000
TEAMS, PEOPLE, POOLS = 300, 900, 4
"""Of the ledger. Each team and each person used each pool on each day: about 5,000 lines a day."""
_LOST = 97
"""Every so many-th node is down."""
_NOTE = "jaguar with three times its machines; over HTTP on loopback, from data in memory"


def measure(say: Callable[[str], None]) -> list[Figure]:
    """Ask for each page several times, alone and next to a thread that parses JSON as readers do."""
    cluster = _large()
    facts, drawing_s = _facts(cluster, time.time())
    listener = listening("127.0.0.1", 0)
    guard = LinkGuard("127.0.0.1", listener.getsockname()[1])
    app = application(Site(lambda: (facts,), time.time), guard)
    figures = [Figure(f"drawing with {NODES:,} states, by who reads", "s", drawing_s)]
    with serving(app, listener):
        for name, path in _paths(cluster.name, facts):
            for busy in (False, True):
                with _parsing() if busy else nullcontext():
                    seconds = tuple(_asked(listener.getsockname()[1], f"/{guard.secret}/{path}") for _ in range(ROUNDS))
                what = f"page {name}, {NODES:,} nodes{', while a cluster is read' * busy}"
                say(f"{what}: slowest of {ROUNDS} {max(seconds):.3f} s")
                figures.append(Figure(what, "s", seconds, AIM_S, _NOTE))
    return figures


def _paths(cluster: str, facts: ClusterFacts) -> Iterator[tuple[str, str]]:
    """Yield (name, path) of the pages."""
    yield from (("fleet", ""), ("cluster", f"cluster/{cluster}/"), ("capacity", "capacity/"))
    kept = facts.bills.value
    assert kept
    day = min(kept.days)
    yield "bill of a month", f"bill/{day:%Y-%m}/"
    yield "bill of a day", f"bill/{day}/"
    yield "bill of a team's month", f"bill/{day:%Y-%m}/team/team-7/"


def _large() -> Cluster:
    """Return an example with more machines in its racks. Addresses repeat: no page shows them."""
    cluster = load_cluster(ROOT / "examples" / "jaguar" / "cluster.yaml")
    times = -(-NODES // len(cluster.host_list()))
    hosts = {
        pool: tuple(host.model_copy(update={"name": f"{host.name}-{copy}"}) for copy in range(times) for host in own)
        for pool, own in cluster.hosts.items()
    }
    return cluster.model_copy(update={"hosts": hosts})


def _facts(cluster: Cluster, now_s: float) -> tuple[ClusterFacts, tuple[float, ...]]:
    """Return the facts, and how long each of several drawings took."""
    nodes = tuple(
        NodeState(host.name, pool, *((Health.DOWN, "NotReady") if number % _LOST == 0 else (Health.HEALTHY, "Ready")))
        for number, (pool, host) in enumerate(cluster.host_list()[:NODES])
    )
    rows = tuple(Row(cluster.name, pool, "", 1, 1, 0, 0, 0, 0, 0, 0, 1.0, False, 60) for pool in cluster.spec.pools)
    waits = tuple(Wait(Fate.WAITING, f"reason {number}", (f"team/job-{number}",), now_s) for number in range(WAITS))
    items = tuple(StatusItem("nodes", node.name, False, "NotReady") for node in nodes[:20])
    spec, status = Spec(cluster, draw(cluster)), Status(cluster.name, "https://10.0.0.1:6443", items)
    seconds = []
    for _ in range(5):
        began = time.perf_counter()
        drawing = drawn(spec, status, nodes)
        seconds.append(time.perf_counter() - began)
    facts = ClusterFacts(
        cluster.name,
        Part(spec, now_s),
        Part(status, now_s),
        Part(Capacity(rows, waits, nodes), now_s),
        Part(Ledger("a bucket", None, False, 0.0, ()), now_s),
        Part(kept(cluster.name, datetime.fromtimestamp(now_s, UTC).date()), now_s),
        drawing,
    )
    return facts, tuple(seconds)


def kept(cluster: str, today: date) -> Kept:
    """Return a ledger with every day that is kept, as `DayKeeper` makes it from objects."""
    since, keeper = since_of(today), DayKeeper(cluster, time.time)
    for number in range((today - since).days, 0, -1):
        day = since + timedelta(days=number - 1)
        keeper.keep(day, _day(day), 1)
    return keeper.kept()


def _day(day: date) -> Day:
    """Return an object of a day with a row for each line."""
    hour = bounds(day)[0]
    amounts = [MICRO * HOUR_S, 8 * HOUR_S, 96_000 * HOUR_S, 900_000 * HOUR_S, 0, 0, 20_000_000]
    owners = [(f"team-{n}", f"team-{n}", "") for n in range(TEAMS)]
    owners += [(f"team-{n % TEAMS}", f"user-{n}", f"person-{n}") for n in range(PEOPLE)]
    pools = [f"pool-{n}" for n in range(POOLS)]
    rows = [[hour, *owner, pool, Use.USED, *amounts] for owner in owners for pool in pools]
    rows += [[hour, f"team-{n}", "", "", pools[n % POOLS], Use.HELD, *amounts] for n in range(0, TEAMS, 3)]
    rows += [[hour, "", "", "", pool, use, *amounts] for pool in pools for use in (Use.FREE, Use.DRAINED, Use.BROKEN)]
    return Day({"day": day.isoformat(), "rows": rows, "missing": [], "notices": [], "without_price": []})


def _asked(port: int, path: str) -> float:
    """Return how long one page takes, in seconds."""
    began = time.perf_counter()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", path)
    answer = connection.getresponse()
    answer.read()
    connection.close()
    if answer.status != 200:
        raise RuntimeError(f"{path.rpartition('/')[0]} answered {answer.status}")
    return time.perf_counter() - began


@contextmanager
def _parsing() -> Iterator[None]:
    """Parse lists of nodes in another thread while the block runs."""
    condition = {"type": "Ready", "status": "True", "message": "kubelet is posting ready status"}
    text = json.dumps(
        [{"metadata": {"name": f"node-{n}"}, "status": {"conditions": [condition] * 5}} for n in range(500)]
    )
    over = threading.Event()

    def parse() -> None:
        while not over.is_set():
            json.loads(text)

    thread = threading.Thread(target=parse, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def main(as_json: alone.JsonOpt = False) -> None:
    """Measure the pages of a large cluster."""
    alone.run(measure, as_json=as_json)


if __name__ == "__main__":
    alone.command(main)
