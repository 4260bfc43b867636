"""Labels for a node's hardware and location."""

from __future__ import annotations

import re
from ipaddress import ip_address
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from cluster import places
from cluster.links import Cable
from cluster.pools import Host, Pool
from cluster.spec import Cloud

VALUE = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?")
"""k8s.io/apimachinery, validation: labelValueFmt."""
POOL = Pool.model_validate({"site": "sjc1", "hosts": "hosts.yaml", "hardware": "dgx-h100"})


def host(**links: str | None) -> Host:
    cables = {name: Cable.model_construct(switch=switch) for name, switch in links.items()}
    return Host.model_construct(name="a", rack="r7", address=ip_address("10.8.0.1"), links=cables)


def test_a_machine_is_labelled_with_its_site_rack_and_switches() -> None:
    assert places.of_host(POOL, host(rail1="leaf2", rail0="leaf1")) == {
        places.SITE: "sjc1",
        places.RACK: "r7",
        places.RAILS: "leaf1.leaf2",
    }


def test_rails_are_labelled_only_if_every_switch_is_known() -> None:
    assert places.RAILS not in places.of_host(POOL, host(rail0="leaf1", rail1=None))
    assert places.RAILS not in places.of_host(POOL, host())


def test_the_label_for_the_kind_of_gpu_is_nvidia_smi_s_name() -> None:
    at_site = places.of_pool(Cloud.LAB, "a", POOL)
    in_region = places.of_pool(Cloud.AWS, "a", Pool(machine="p5.48xlarge", max=1))
    assert at_site[places.GPU_KIND] == in_region[places.GPU_KIND] == "NVIDIA-H100-80GB-HBM3"
    assert places.of_pool(Cloud.LAB, "a", Pool(machine="lab-small", max=1)) == {"menagerie/pool": "a"}


@settings(max_examples=50)
@given(st.lists(st.text(min_size=1, max_size=40), min_size=1, max_size=8))
def test_any_names_of_switches_make_a_valid_label(names: list[str]) -> None:
    labels: dict[str, Any] = places.of_host(POOL, host(**{f"rail{number}": name for number, name in enumerate(names)}))
    assert len(labels[places.RAILS]) <= 63
    assert VALUE.fullmatch(labels[places.RAILS])
