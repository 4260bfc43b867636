"""The expander over gRPC with TLS, with messages encoded by the test."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest

from cluster.autoscaler import Autoscaler
from cluster.errors import RefusedError
from cluster.load import load_cluster
from controllers.expander.offers import Priced, prices_of, read
from controllers.expander.server import Expander, Tls, serve
from controllers.expander.wire import Request, Response
from tests.scheduling.expander.asking import Authority, node, option, pod, request

ROOT = Path(__file__).resolve().parents[3]
TIMEOUT_S = 60
PRICES = {"m7i.large": Priced(100_000), "m7i.8xlarge": Priced(1_600_000), "nobody's": Priced(None)}


def price_of(_: str, machine: str) -> Priced:
    return PRICES[machine]


def template(machine: str, cpu: int) -> bytes:
    return node(
        {"node.kubernetes.io/instance-type": machine}, {"cpu": str(cpu), "memory": f"{4 * cpu}Gi", "pods": "110"}
    )


def question(other: str = "m7i.8xlarge") -> bytes:
    """Return a request for two pods: two small nodes for 0.20 $/h, or a large one for 1.60."""
    pods = [pod(name, {"cpu": "1500m", "memory": "1Gi"}) for name in ("a", "b")]
    options = [option("small", 2, *pods), option("large", 1, *pods)]
    return request(options, {"small": template("m7i.large", 2), "large": template(other, 32)})


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


@contextmanager
def running(expander: Expander, tls: Tls) -> Iterator[str]:
    server, port = serve(expander, "127.0.0.1:0", tls)
    try:
        yield f"127.0.0.1:{port}"
    finally:
        server.stop(None).wait()
        expander.close()


def ask(address: str, credentials: grpc.ChannelCredentials, data: bytes) -> list[str]:
    """Send a request as cluster-autoscaler does; return the ids in the answer."""
    with grpc.secure_channel(address, credentials) as channel:
        method: Callable[..., Any] = channel.unary_unary(
            "/grpcplugin.Expander/BestOptions",
            request_serializer=lambda sent: sent,
            response_deserializer=lambda got: Response.FromString(got),
        )
        return [each.nodeGroupId for each in method(data, timeout=TIMEOUT_S, wait_for_ready=False).options]


def trusting(authority: Authority, pair: tuple[Path, Path] | None = None) -> grpc.ChannelCredentials:
    chain, key = (pair[0].read_bytes(), pair[1].read_bytes()) if pair else (None, None)
    return grpc.ssl_channel_credentials(authority.file.read_bytes(), key, chain)


def test_the_cheapest_group_is_returned_over_tls(authority: Authority) -> None:
    with running(Expander(price_of), Tls(*authority.issue("expander"))) as address:
        assert ask(address, trusting(authority), question()) == ["small"]


def test_without_a_price_all_groups_are_returned(authority: Authority) -> None:
    with running(Expander(price_of), Tls(*authority.issue("expander"))) as address:
        assert ask(address, trusting(authority), question("nobody's")) == ["small", "large"]


def test_a_server_with_a_certificate_of_another_ca_is_rejected(authority: Authority, tmp_path: Path) -> None:
    other = Authority(tmp_path, "other")
    with running(Expander(price_of), Tls(*authority.issue("expander"))) as address:
        with pytest.raises(grpc.RpcError) as refused:
            ask(address, trusting(other), question())
        assert refused.value.code() is grpc.StatusCode.UNAVAILABLE


def test_with_a_ca_for_clients_others_get_no_answer(authority: Authority) -> None:
    tls = Tls(*authority.issue("expander"), authority.file)
    with running(Expander(price_of), tls) as address:
        with pytest.raises(grpc.RpcError):
            ask(address, trusting(authority), question())
        assert ask(address, trusting(authority, authority.issue("client")), question()) == ["small"]


def test_a_renewed_certificate_is_used_and_half_a_pair_is_not(authority: Authority, tmp_path: Path) -> None:
    certificate, key = authority.issue("expander")
    with running(Expander(price_of), Tls(certificate, key)) as address:
        assert ask(address, trusting(authority), question()) == ["small"]
        newer = Authority(tmp_path, "newer")
        renewed = newer.issue("renewed")
        certificate.write_bytes(renewed[0].read_bytes())
        assert ask(address, trusting(authority), question()) == ["small"]
        key.write_bytes(renewed[1].read_bytes())
        assert ask(address, trusting(newer), question()) == ["small"]


def test_a_slow_request_and_one_that_arrives_meanwhile_are_left_to_the_next_expander(
    authority: Authority,
) -> None:
    free = threading.Event()

    def slow(pool: str, machine: str) -> Priced:
        free.wait(TIMEOUT_S)
        return price_of(pool, machine)

    expander = Expander(slow, deadline_s=0.05)
    sent = Request.FromString(question())
    try:
        for _ in range(2):
            assert [each.nodeGroupId for each in expander.answer(sent).options] == ["small", "large"]
    finally:
        free.set()
        expander.close()


@pytest.mark.parametrize(
    "spoiled",
    [
        request([option("small", 2, b"\xff\xff no pod"), option("large", 1)], {}),
        request([option("small", 2, pod("a", {"cpu": "many"})), option("large", 1)], {}),
        request([option("small", 2, pod("a", {"cpu": "1"})), option("large", 1, pod("a", {"cpu": "1"}))], {}),
    ],
)
def test_invalid_requests_are_left_to_the_next_expander(spoiled: bytes) -> None:
    expander = Expander(lambda pool, machine: Priced(None) if not machine else price_of(pool, machine))
    try:
        for _ in range(2):
            answer = expander.answer(Request.FromString(spoiled))
            assert [each.nodeGroupId for each in answer.options] == ["small", "large"]
    finally:
        expander.close()


def test_pods_and_nodes_are_counted_as_the_scheduler_does() -> None:
    one = pod("a", {"cpu": "1500m", "memory": "1Gi", "nvidia.com/gpu": "8"}, overhead={"cpu": "100m"})
    offers, pods = read(Request.FromString(request([option("g", 3, one)], {"g": template("m7i.large", 2)})), price_of)
    ((key, waiting),) = pods.items()
    assert (key, waiting.since_s) == ("team-vision/a", 1_790_000_000)
    assert dict(waiting.requests.amounts) == {"cpu": 1600, "memory": 1024, "nvidia.com/gpu": 8}
    assert (offers[0].count, offers[0].price, dict(offers[0].room.amounts)) == (
        3,
        100_000,
        {"cpu": 2000, "memory": 8192, "pods": 110},
    )


def test_the_price_is_that_of_the_specs_pool_or_else_of_the_machine_type() -> None:
    small = load_cluster(ROOT / "examples/aws-small/cluster.yaml")
    plane = small.spec.control_plane.model_copy(update={"region": "us-east-1"})
    pools = {"cpu": small.spec.pools["cpu"].model_copy(update={"machine": "m7i.4xlarge"})}
    pools["spot"] = pools["cpu"].model_copy(update={"spot": True})
    spec = small.spec.model_copy(update={"control_plane": plane, "pools": pools})
    of = prices_of(small.model_copy(update={"spec": spec}))
    assert of("cpu", "") == Priced(806_400)
    assert of("", "m7i.8xlarge") == Priced(1_612_800)
    # No list has prices of spot machines.
    assert of("spot", "m7i.4xlarge") == Priced(None, spot=True)
    assert of("", "") == Priced(None)
    spec = spec.model_copy(update={"autoscaler": Autoscaler(prices={"cpu": 0.5, "spot": 0.2})})
    of = prices_of(small.model_copy(update={"spec": spec}))
    assert (of("cpu", ""), of("spot", "")) == (Priced(500_000), Priced(200_000, spot=True))


def test_files_that_are_not_a_pair_are_refused_at_the_start(authority: Authority) -> None:
    certificate, key = authority.issue("expander")
    with pytest.raises(RefusedError, match="belongs to another certificate"):
        serve(Expander(price_of), "127.0.0.1:0", Tls(certificate, authority.issue("other")[1]))
    with pytest.raises(RefusedError, match="no-file can't be read: there is no such file"):
        serve(Expander(price_of), "127.0.0.1:0", Tls(certificate.with_name("no-file"), key))
