from __future__ import annotations

from itertools import product

from tests.cli.conftest import EXAMPLES


def test_flows_are_derived_from_the_spec_alone(menagerie):
    ran = menagerie("show", "flows", str(EXAMPLES / "jaguar"))
    assert ran.code == 0
    assert "to API server" in ran.out
    assert "worker in the region" not in ran.out


def test_in_json_every_flow_has_its_ports(menagerie):
    document = menagerie("show", "flows", "lab", "--json").json
    assert document["cluster"] == "lab"
    kubelets = [flow for flow in document["flows"] if flow["ports"] == [10250]]
    workers = ("worker in the region", "worker at a site")
    assert {(flow["source"], flow["destination"]) for flow in kubelets} == {*product(workers, workers)}
    assert {5000} in [set(flow["ports"]) for flow in document["flows"]]
