"""The figures of traffic, computed from the rounds."""

from __future__ import annotations

import pytest

from tests.bench.traffic import End, Ways, summary


def test_pods_are_compared_with_their_hosts_in_the_same_round() -> None:
    ways = Ways([10e9, 20e9], [10e9, 16e9], [8e9, 8e9], [4e9, 2e9])
    figures = {figure.name: figure for figure in summary(ways)}
    assert figures["one rack, hosts ÷ pods"].values == (1.0, 1.25)
    assert figures["two racks, hosts ÷ pods (VXLAN)"].values == (2.0, 4.0)
    assert figures["pod to pod, one rack"].values == (10.0, 16.0)


@pytest.mark.parametrize(("pods", "met"), [(9.6e9, True), (9.4e9, False)])
def test_the_aim_is_95_percent_of_the_hosts_speed(pods: float, met: bool) -> None:
    figures = {figure.name: figure for figure in summary(Ways([10e9], [pods], [1e9], [1e9]))}
    assert figures["one rack, hosts ÷ pods"].met is met


def test_iperf3_runs_in_the_pods_network_namespace() -> None:
    assert End("w", "10.0.0.1").argv("iperf3") == ("iperf3",)
    assert End("w", "10.200.1.2", "cni-x").argv("iperf3") == ("ip", "netns", "exec", "cni-x", "iperf3")
