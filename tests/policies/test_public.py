"""What is permitted with a public endpoint in the spec, and not without."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from cluster.spec import Cluster
from stacks.policies.model import Resource
from tests.policies.support import REGIONS, ZONES, broken, resource

OPERATORS = "198.51.100.0/24"
EVERYBODY = "0.0.0.0/0"

PUBLIC: dict[str, tuple[Resource, ...]] = {
    "aws": (
        resource("aws:ec2/eip:Eip", outputs={"allocationId": "eipalloc-1"}),
        resource(
            "aws:lb/loadBalancer:LoadBalancer", {"internal": False, "subnetMappings": [{"allocationId": "eipalloc-1"}]}
        ),
    ),
    "azure": (
        resource("azure-native:network:PublicIPAddress", outputs={"id": "/rg/p"}),
        resource(
            "azure-native:network:LoadBalancer", {"frontendIPConfigurations": [{"publicIPAddress": {"id": "/rg/p"}}]}
        ),
    ),
    "gcp": (
        resource("gcp:compute/address:Address", {"addressType": "EXTERNAL"}, outputs={"address": "203.0.113.9"}),
        resource(
            "gcp:compute/forwardingRule:ForwardingRule",
            {"loadBalancingScheme": "EXTERNAL", "ipAddress": "203.0.113.9"},
        ),
    ),
}


def lemur(build: Callable[..., Cluster], cloud: str, *operators: str) -> Cluster:
    public = {"name": "api.example.org", "operators": list(operators)} if operators else None
    plane = {"cloud": cloud, "region": REGIONS[cloud], "zones": ZONES[cloud], "public": public}
    return build({"name": "lemur", "control_plane": plane})


@pytest.mark.parametrize("cloud", PUBLIC)
def test_a_public_load_balancer_and_its_address_pass_only_if_the_spec_requests_them(
    build: Callable[..., Cluster], cloud: str
) -> None:
    def count(cluster: Cluster) -> int:
        return sum(len(broken(rule, cluster, PUBLIC[cloud])) for rule in ("addresses-private", "balancers-private"))

    assert count(lemur(build, cloud)) > 0
    assert count(lemur(build, cloud, OPERATORS)) == 0


@pytest.mark.parametrize("cloud", PUBLIC)
def test_an_unused_public_address_is_a_violation_even_with_a_public_endpoint(
    build: Callable[..., Cluster], cloud: str
) -> None:
    assert broken("addresses-private", lemur(build, cloud, OPERATORS), PUBLIC[cloud][:1])


def test_admitting_everybody_is_only_a_warning_if_the_spec_requests_it(build: Callable[..., Cluster]) -> None:
    rule = resource("aws:ec2/securityGroup:SecurityGroup", {"ingress": [{"cidrBlocks": [EVERYBODY]}]})
    for operators, severity in (((OPERATORS,), "error"), ((EVERYBODY,), "warning")):
        violations = broken("ingress-closed", lemur(build, "aws", *operators), (rule,))
        assert [violation.severity for violation in violations] == [severity]
