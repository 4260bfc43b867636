from __future__ import annotations

import pytest

from cluster.problems import SpecError
from components.workers.group_vars import ROOT, given_to_routers, read_variables
from inventories.gateways import COMPUTED

KNOWN = {"kubelet_config_patch", "containerd_systemd_cgroup"}
GROUPS = {"pool_gpu"}


def write(folder, name, text):
    (folder / "group_vars").mkdir(exist_ok=True)
    (folder / "group_vars" / name).write_text(text)


def test_a_cluster_without_extra_variables_has_none(tmp_path):
    assert read_variables(tmp_path, GROUPS, KNOWN) == {}


def test_variables_are_read_by_group(tmp_path):
    write(tmp_path, "all.yml", "containerd_systemd_cgroup: false\nansible_timeout: 30\n")
    write(tmp_path, "pool_gpu.yml", "kubelet_config_patch: {maxPods: 64}\n")
    assert read_variables(tmp_path, GROUPS, KNOWN) == {
        "all": {"containerd_systemd_cgroup": False, "ansible_timeout": 30},
        "pool_gpu": {"kubelet_config_patch": {"maxPods": 64}},
    }


def test_all_mistakes_in_all_files_are_reported_with_their_place_and_a_fix(tmp_path):
    write(tmp_path, "all.yml", "\ncontainerd_systemd_cgroups: false\n")
    write(tmp_path, "pool_gpus.yml", "kubelet_config_patch: {}\n")
    with pytest.raises(SpecError) as caught:
        read_variables(tmp_path, GROUPS, KNOWN)
    text = str(caught.value)
    assert "all.yml:2:1: error[CFG-001] no role has a variable containerd_systemd_cgroups" in text
    assert "fix: write containerd_systemd_cgroup" in text
    assert "there is no group pool_gpus; did you mean pool_gpu?" in text


def test_a_file_that_is_not_yaml_is_a_problem_and_not_a_crash(tmp_path):
    write(tmp_path, "all.yml", "a: [\n")
    with pytest.raises(SpecError, match="CFG-011"):
        read_variables(tmp_path, GROUPS, KNOWN)


@pytest.fixture
def root(tmp_path, lab):
    """Return a checkout with a cluster's folder."""
    (tmp_path / "roles").symlink_to(ROOT / "roles")
    (tmp_path / "inventories" / lab.name).mkdir(parents=True)
    return tmp_path


def test_routers_get_their_own_file_and_their_variables_from_all(root, lab):
    folder = root / "inventories" / lab.name
    write(folder, "all.yml", "containerd_systemd_cgroup: false\nansible_timeout: 30\nvpn_gateway_unsettable: report\n")
    write(folder, "gateways.yml", "vpn_gateway_packages: []\nansible_timeout: 60\n")
    write(folder, "pool_gpu.yml", "kubelet_config_patch: {maxPods: 64}\n")
    assert given_to_routers(lab, COMPUTED, root) == {
        "ansible_timeout": 60,
        "vpn_gateway_unsettable": "report",
        "vpn_gateway_packages": [],
    }
    assert set(read_variables(folder, GROUPS, KNOWN)) == {"all", "pool_gpu"}


def test_routers_of_a_cluster_without_files_get_nothing(root, lab):
    assert given_to_routers(lab, COMPUTED, root) == {}


def test_variables_that_a_routers_role_does_not_read_or_that_specs_decide_are_refused(root, lab):
    folder = root / "inventories" / lab.name
    write(folder, "all.yml", "vpn_gateway_rules: flush ruleset\n")
    write(folder, "gateways.yml", "vpn_gateway_package: []\ncontainerd_systemd_cgroup: true\nvpn_gateway_frr: x\n")
    with pytest.raises(SpecError) as caught:
        given_to_routers(lab, COMPUTED, root)
    text = str(caught.value)
    assert "gateways.yml:1:1: error[CFG-001] no role has a variable vpn_gateway_package; did you mean" in text
    assert "gateways.yml:2:1: error[CFG-001] no role has a variable containerd_systemd_cgroup" in text
    assert "gateways.yml:3:1: error[CFG-001] vpn_gateway_frr is computed from the specs" in text
    assert "all.yml:1:1: error[CFG-001] vpn_gateway_rules is computed from the specs" in text


def test_a_router_variable_in_a_group_of_workers_is_refused_with_its_place(tmp_path):
    write(tmp_path, "pool_gpu.yml", "vpn_gateway_packages: []\n")
    write(tmp_path, "gateway.yml", "vpn_gateway_packages: []\n")
    with pytest.raises(SpecError) as caught:
        read_variables(tmp_path, GROUPS, KNOWN)
    text = str(caught.value)
    assert "pool_gpu.yml:1:1: error[CFG-001] vpn_gateway_packages is for edge routers" in text
    assert "fix: write it in gateways.yml" in text
    assert "there is no group gateway; did you mean gateways?" in text


def test_an_invalid_name_that_starts_like_ansibles_is_refused(tmp_path):
    write(tmp_path, "all.yml", "\"ansible_{{ lookup('pipe', 'id') }}\": 1\n")
    with pytest.raises(SpecError, match="CFG-001"):
        read_variables(tmp_path, GROUPS, KNOWN)
