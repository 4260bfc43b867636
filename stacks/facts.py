"""What only a provider knows of its cluster, on its way to `ClusterOutputs`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import pulumi

from cluster.spec import Cluster
from network.vpn import Tunnel, tunnels


@dataclass(frozen=True)
class GatewayEnd:
    """The cloud's end of a tunnel. address: public, "" until the cloud assigns it. certificate: the subject of its certificate, or ""."""

    address: str
    certificate: str = ""


GatewayEnds = Mapping[str, tuple[GatewayEnd, ...]]
"""Edge router, as ``<site>/<router>`` -> the ends that its tunnels lead to, in order."""


@dataclass(frozen=True)
class Facts:
    """load_balancer_status, public_target: see `ClusterOutputs`. host_keys: host -> public host key line of SSH."""

    load_balancer_status: str | None = None
    public_target: str | None = None
    host_keys: Mapping[str, str] = field(default_factory=dict)
    gateway_ends: GatewayEnds = field(default_factory=dict)

    def addresses(self) -> dict[str, tuple[str, ...]]:
        """Edge router -> known addresses of its gateway ends. Omits routers without any."""
        return _known(self.gateway_ends, lambda end: end.address)

    def certificates(self) -> dict[str, tuple[str, ...]]:
        """Edge router -> subjects of the certificates of its gateway ends. Omits routers without any."""
        return _known(self.gateway_ends, lambda end: end.certificate)


def gather(
    *,
    load_balancer_status: pulumi.Input[str] | None = None,
    public_target: pulumi.Input[str] | None = None,
    host_keys: Mapping[str, pulumi.Input[str]] | None = None,
    gateway_ends: pulumi.Input[GatewayEnds] | None = None,
) -> pulumi.Output[Facts]:
    """Return the facts once all of them are known."""
    facts: pulumi.Output[Facts] = pulumi.Output.all(
        load_balancer_status=load_balancer_status,
        public_target=public_target,
        host_keys=dict(host_keys or {}),
        gateway_ends=gateway_ends or {},
    ).apply(lambda values: Facts(**values))
    return facts


def gateway_ends(
    cluster: Cluster,
    address: Callable[[Tunnel], pulumi.Output[str]],
    certificate: Callable[[Tunnel], pulumi.Output[str]] | None = None,
) -> pulumi.Output[GatewayEnds]:
    """Return the ends of a cluster's tunnels. certificate: returns a subject; called for tunnels whose router has a certificate."""
    by_router: dict[str, list[pulumi.Output[GatewayEnd]]] = {}
    for tunnel in tunnels(cluster):
        subject = certificate(tunnel) if certificate and tunnel.certificate else ""
        end: pulumi.Output[GatewayEnd] = pulumi.Output.all(address(tunnel), subject).apply(
            lambda values: GatewayEnd(*values)
        )
        by_router.setdefault(f"{tunnel.site}/{tunnel.router}", []).append(end)
    ends: pulumi.Output[GatewayEnds] = pulumi.Output.all(**by_router).apply(
        lambda values: {router: tuple(own) for router, own in values.items()}
    )
    return ends


def _known(ends: GatewayEnds, value: Callable[[GatewayEnd], str]) -> dict[str, tuple[str, ...]]:
    known = {router: tuple(filter(None, map(value, own))) for router, own in ends.items()}
    return {router: values for router, values in known.items() if values}
