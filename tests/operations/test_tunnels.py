"""Status of tunnels; `menagerie-vpn status` itself is tested with real daemons in tests/vpn."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from clients.remote.executor import Done
from cluster.load import load_cluster
from cluster.spec import Cluster
from operations.status import tunnels

JAGUAR = Path(__file__).parents[2] / "examples" / "jaguar" / "cluster.yaml"
UP = {"connection": "jaguar-1", "ike": "ESTABLISHED", "bgp": "Established", "since": "01:12:40", "routes": 12}
DOWN = {"connection": "jaguar-2", "ike": "NONE", "bgp": "Active", "since": "never", "routes": 0}


class Routers:
    """Responses of routers, instead of ssh. asked: which router was asked what."""

    def __init__(self, answers: dict[str, Done]) -> None:
        self.answers, self.asked = answers, list[tuple[str, Sequence[str]]]()

    def start(self, host: str, words: Sequence[str]) -> Routers.Asked:
        self.asked.append((host, words))
        return Routers.Asked(self.answers[host])

    class Asked:
        def __init__(self, done: Done) -> None:
            self.done = done

        def wait(self, timeout_s: float) -> Done:
            return self.done


@pytest.fixture
def jaguar() -> Cluster:
    """The example, with Debian machines as edge routers."""
    cluster = load_cluster(JAGUAR)
    spec = cluster.spec.model_dump(mode="json")
    for site in spec["sites"].values():
        for number, router in enumerate((site["vpn"] or {"routers": {}})["routers"].values(), start=1):
            router["host"] = f"10.96.0.{number}"
    return cluster.model_copy(update={"spec": type(cluster.spec).model_validate(spec)})


def test_each_tunnel_is_one_line_and_so_is_a_router_that_does_not_respond(
    jaguar: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = tunnels.edge_routers(jaguar)
    routers = Routers({first: Done(1, json.dumps([UP, DOWN])), second: Done(255, "ssh: connect: No route to host\n")})

    @contextmanager
    def ssh_to(_: Cluster) -> Iterator[Routers]:
        yield routers

    monkeypatch.setattr(tunnels, "ssh_to", ssh_to)
    lines = {item.name: (item.ok, item.detail, item.help) for item in tunnels.tunnels(jaguar)}
    assert lines == {
        f"{first}, jaguar-1": (True, "keys established, BGP established for 01:12:40, 12 routes", ""),
        f"{first}, jaguar-2": (
            False,
            "keys none, BGP active for never, 0 routes",
            'see docs/how-to/vpn.md, "When it goes wrong"',
        ),
        second: (
            False,
            "can't read its tunnels: ssh: connect: No route to host",
            "./menagerie vpn configure jaguar --dry-run",
        ),
    }
    words = ["/usr/local/sbin/menagerie-vpn", "status", "--json"]
    assert routers.asked == [(first, words), (second, words)]


def test_routers_of_another_make_are_not_asked() -> None:
    cluster = load_cluster(JAGUAR)
    assert all(
        router.host is None for site in cluster.spec.sites.values() if site.vpn for router in site.vpn.routers.values()
    )
    assert tunnels.edge_routers(cluster) == ()
