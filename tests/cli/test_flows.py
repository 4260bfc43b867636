from __future__ import annotations

from itertools import product

from tests.cli.conftest import EXAMPLES


def test_the_flows_of_a_cluster_are_told_from_its_spec_alone(menagerie):
    told = menagerie("show", "flows", str(EXAMPLES / "jaguar"))
    assert told.code == 0
    assert "to API server" in told.out
    assert "worker in the region" not in told.out


def test_as_json_every_flow_has_its_ports_and_reason(menagerie):
    document = menagerie("show", "flows", "lab", "--json").json
    assert document["cluster"] == "lab"
    kubelets = [flow for flow in document["flows"] if flow["ports"] == [10250]]
    workers = ("worker in the region", "worker at a site")
    assert {(flow["source"], flow["destination"]) for flow in kubelets} == {*product(workers, workers)}
    assert {5000} in [set(flow["ports"]) for flow in document["flows"]]
