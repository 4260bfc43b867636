from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from cluster.spec import Cluster
from inventories.build import build, group_name, layout
from tests.inventories.conftest import TOKEN

GOLDEN = Path(__file__).parents[1] / "golden" / "lab" / "inventory.json"


def test_the_lab_s_inventory_matches_the_golden_file(lab_inventory):
    """MENAGERIE_UPDATE_GOLDEN=1 rewrites it; review the diff."""
    text = json.dumps(lab_inventory.data, indent=1) + "\n"
    if os.environ.get("MENAGERIE_UPDATE_GOLDEN"):
        GOLDEN.write_text(text)
    assert text == GOLDEN.read_text()


def test_every_variable_in_the_inventory_is_declared_by_a_role(lab_inventory, known):
    data = lab_inventory.data["all"]
    used = {*data["vars"]}
    for entry in (*data["hosts"].values(), *(group["vars"] for group in data["children"].values())):
        used |= set(entry)
    undeclared = {name for name in used - known if not name.startswith(("ansible_", "menagerie_"))}
    assert undeclared == set()


def test_a_host_only_has_its_own_address_links_and_labels(lab_inventory):
    for host, values in lab_inventory.data["all"]["hosts"].items():
        addresses = {
            value for name, value in values.items() if not name.startswith("links_") and name != "kubelet_labels"
        }
        assert addresses == {values["links_settings"]["address"]}, host


def test_an_additional_host_changes_no_entry_of_others(lab, outputs):
    workers = lab.hosts["workers"]
    further = workers[0].model_copy(update={"name": "worker-4", "address": workers[0].address + 9})
    more = Cluster(spec=lab.spec, hosts={"workers": (*workers, further)})
    few, all_hosts = build(lab, outputs).data["all"], build(more, outputs).data["all"]
    assert few["vars"] == all_hosts["vars"]
    assert few["hosts"].items() <= all_hosts["hosts"].items()


def test_hosts_are_grouped_by_pool_site_and_rack(lab_inventory):
    assert lab_inventory.groups == {
        "pool_workers": ("worker-1", "worker-2", "worker-3"),
        "site_onprem": ("worker-1", "worker-2", "worker-3"),
        "rack_onprem_r1": ("worker-1", "worker-2"),
        "rack_onprem_r2": ("worker-3",),
    }


def test_group_names_are_python_identifiers():
    assert group_name("rack", "sjc-1", "r1").isidentifier()


def test_a_joining_host_only_gets_its_own_token(lab, outputs):
    plain, joining = build(lab, outputs), build(lab, outputs).joining({"worker-2": TOKEN, "stranger": TOKEN})
    assert TOKEN not in json.dumps(plain.data)
    hosts = joining.data["all"]["hosts"]
    assert [host for host, values in hosts.items() if values.get("kubelet_token") == TOKEN] == ["worker-2"]
    assert json.dumps(joining.data).count(TOKEN) == 1


def test_a_token_is_not_shown_by_repr(lab, outputs):
    assert TOKEN not in repr(build(lab, outputs).joining({"worker-2": TOKEN}))


def test_hosts_and_groups_are_known_before_the_cluster_is_built(lab, outputs):
    known, built = layout(lab), build(lab, outputs)
    assert (known.hosts, known.groups) == (built.hosts, built.groups)


def test_a_missing_checksum_names_the_download(lab, outputs):
    without = outputs.model_copy(update={"artefacts": outputs.artefacts.model_copy(update={"sha256": {}})})
    with pytest.raises(KeyError, match="the provider has no checksum for github.com"):
        build(lab, without)


def test_known_hosts_has_a_line_for_every_host_and_names_a_port_that_is_not_22(lab, outputs):
    assert build(lab, outputs).known_hosts.splitlines()[0] == "10.78.1.11 ssh-ed25519 AAAA1"
    site = lab.spec.sites["onprem"]
    moved = site.model_copy(update={"ssh": site.ssh.model_copy(update={"port": 2222})})
    other = lab.model_copy(update={"spec": lab.spec.model_copy(update={"sites": {"onprem": moved}})})
    inventory = build(other, outputs)
    assert inventory.known_hosts.splitlines()[0] == "[10.78.1.11]:2222 ssh-ed25519 AAAA1"
    assert inventory.data["all"]["children"]["site_onprem"]["vars"]["ansible_port"] == 2222


def test_hosts_with_unknown_ssh_keys_are_listed(lab, outputs):
    keys = {"worker-1": "ssh-ed25519 AAAA"}
    some = outputs.model_copy(update={"ssh": outputs.ssh.model_copy(update={"known_hosts": keys})})
    assert build(lab, some).unknown_hosts == ("worker-2", "worker-3")


def test_an_ordinary_user_becomes_root(lab, outputs):
    site = lab.spec.sites["onprem"]
    ordinary = site.model_copy(update={"ssh": site.ssh.model_copy(update={"user": "ops"})})
    other = lab.model_copy(update={"spec": lab.spec.model_copy(update={"sites": {"onprem": ordinary}})})
    assert build(other, outputs).data["all"]["children"]["site_onprem"]["vars"]["menagerie_become"] is True


def test_variables_of_the_cluster_take_precedence_over_computed_ones(lab, outputs):
    inventory = build(lab, outputs, {"all": {"containerd_sandbox_image": "mine/pause:1"}})
    assert inventory.data["all"]["vars"]["containerd_sandbox_image"] == "mine/pause:1"


def test_two_groups_with_the_same_name_are_refused(lab, outputs):
    worker = lab.hosts["workers"][0]
    moved = worker.model_copy(update={"rack": "c-d"}), worker.model_copy(update={"rack": "d", "name": "other"})
    pool = lab.spec.pools["workers"]
    pools = {"p": pool.model_copy(update={"site": "b"}), "q": pool.model_copy(update={"site": "b-c"})}
    site = lab.spec.sites["onprem"]
    spec = lab.spec.model_copy(update={"pools": pools, "sites": {"b": site, "b-c": site}})
    with pytest.raises(ValueError, match="rack_b_c_d"):
        build(Cluster.model_construct(spec=spec, hosts={"p": moved[:1], "q": moved[1:]}), outputs)


def test_workers_at_a_site_know_the_name_of_the_api_at_every_address_of_its_load_balancer(lab, outputs):
    """A private DNS zone answers only inside its region."""
    named = outputs.model_copy(
        update={"endpoint": "api.horus.internal:6443", "balancers": ("10.145.0.4", "10.145.0.68")}
    )
    shared = build(lab, named).data["all"]["vars"]
    assert shared["base_names"] == ["10.145.0.4 api.horus.internal", "10.145.0.68 api.horus.internal"]
    assert build(lab, outputs).data["all"]["vars"]["base_names"] == []
