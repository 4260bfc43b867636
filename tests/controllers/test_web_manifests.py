"""The objects of the pages' controller: who reaches it, what it may, and its size, by the spec."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cluster.errors import RefusedError
from cluster.spec import Cluster
from cluster.web import secret_names
from controllers.apply import _ANY_TENANCY
from controllers.kinds import WEB
from controllers.manifests import NAMESPACE, PAGES_PORT, PORT, VISITORS, Desired, objects
from controllers.web.delivered import TLS, Certificate, checked_pair
from stacks.certificates import Request, issue, new_authority

READS = {"list", "get"}
REVIEWS = {"tokenreviews", "subjectaccessreviews"}


@pytest.fixture
def desired() -> Desired:
    return Desired("registry.test/m@sha256:0", {"cluster.yaml": "name: lab\n"}, _ANY_TENANCY, (WEB,), nodes=20)


def by_kind(desired: Desired) -> dict[str, dict[str, Any]]:
    return {each["kind"]: each for each in objects(desired) if each["metadata"]["name"] not in (VISITORS, "spec")}


def pod(desired: Desired) -> dict[str, Any]:
    spec: dict[str, Any] = by_kind(desired)["Deployment"]["spec"]["template"]["spec"]
    return spec


def test_by_default_only_a_service_inside_the_cluster_leads_to_the_pages(desired: Desired) -> None:
    spec = by_kind(desired)["Service"]["spec"]
    assert spec["type"] == "ClusterIP"
    assert spec["ports"] == [{"name": "pages", "port": 80, "targetPort": "pages", "protocol": "TCP"}]
    ports = {each["name"]: each["containerPort"] for each in pod(desired)["containers"][0]["ports"]}
    assert ports == {"http": PORT, "pages": PAGES_PORT}


def test_with_a_certificate_and_a_port_every_worker_leads_to_them(desired: Desired) -> None:
    spec = by_kind(replace(desired, pages={TLS: "x"}, node_port=30443))["Service"]["spec"]
    assert (spec["type"], spec["ports"][0]["port"], spec["ports"][0]["nodePort"]) == ("NodePort", 443, 30443)


def test_its_account_only_reads_and_asks_who_somebody_is(desired: Desired) -> None:
    rules = [
        rule
        for each in objects(desired)
        if each["kind"] in ("ClusterRole", "Role") and each["metadata"]["name"] != VISITORS
        for rule in each["rules"]
    ]
    assert {resource for rule in rules for resource in rule["resources"] if not {*rule["verbs"]} <= READS} == REVIEWS
    assert {verb for rule in rules if REVIEWS & {*rule["resources"]} for verb in rule["verbs"]} == {"create"}
    assert not {"secrets", "serviceaccounts", "nodes/proxy"} & {r for rule in rules for r in rule["resources"]}


def test_it_has_no_lease_and_two_pods_that_both_serve(desired: Desired) -> None:
    assert "Lease" not in by_kind(desired)
    deployment = by_kind(desired)["Deployment"]["spec"]
    assert deployment["replicas"] == 2
    assert "prometheus.io/scrape" not in deployment["template"]["metadata"]["annotations"]
    assert not [each for each in pod(desired)["containers"][0]["args"] if each.startswith("--every")]
    assert by_kind(desired)["PodDisruptionBudget"]["spec"]["maxUnavailable"] == 1


def test_who_may_forward_a_port_reaches_only_this_namespace_and_nobody_is_bound(desired: Desired) -> None:
    (role,) = (each for each in objects(desired) if each["metadata"]["name"] == VISITORS)
    assert (role["kind"], role["metadata"]["namespace"]) == ("Role", NAMESPACE)
    assert {(*rule["resources"], *rule["verbs"]) for rule in role["rules"]} == {
        ("services", "get"),
        ("pods", "get", "list"),
        ("pods/portforward", "create"),
    }
    assert VISITORS not in str([each for each in objects(desired) if each["kind"].endswith("RoleBinding")])


@pytest.mark.parametrize(
    ("nodes", "cpu", "memory", "most"), [(3, "100m", "256Mi", "512Mi"), (7500, "400m", "1456Mi", "2912Mi")]
)
def test_its_pods_grow_with_the_cluster(desired: Desired, nodes: int, cpu: str, memory: str, most: str) -> None:
    size = pod(replace(desired, nodes=nodes))["containers"][0]["resources"]
    assert size == {"requests": {"cpu": cpu, "memory": memory}, "limits": {"memory": most}}


def signed() -> str:
    made = issue(new_authority("web"), Request("web", addresses=("127.0.0.1",)))
    return made.certificate + made.private_key


def test_a_certificate_without_its_key_is_refused_and_never_shown() -> None:
    pair = signed()
    assert checked_pair(pair, "web") == {TLS: pair}
    half = pair[pair.index("-----BEGIN PRIVATE") :] if "BEGIN PRIVATE" in pair else pair[-200:]
    for text in (half, pair[: pair.index("-----END") + 10], "nonsense", ""):
        with pytest.raises(RefusedError, match="the secret web is not a certificate and its key") as error:
            checked_pair(text, "web")
        assert "BEGIN" not in str(error.value)


def test_a_replaced_certificate_is_used_and_a_broken_one_is_not(tmp_path: Path) -> None:
    (tmp_path / TLS).write_text(signed())
    certificate = Certificate(tmp_path)
    assert certificate.renew() is False
    (tmp_path / TLS).write_text("half")
    with pytest.raises(RefusedError):
        certificate.renew()
    (tmp_path / TLS).write_text(signed())
    assert (certificate.renew(), certificate.renew()) == (True, False)


def test_secrets_of_the_spec_are_the_key_and_the_certificate(build: Callable[..., Cluster]) -> None:
    web = build({"web": {"key": {"secret": "reader"}, "certificate": {"secret": "web"}}}).spec.web
    assert (secret_names(web), secret_names(None), secret_names(build({"web": {}}).spec.web)) == (
        ("reader", "web"),
        (),
        (),
    )
