from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from components.workers.group_vars import roles
from inventories.build import Inventory
from inventories.desired import desired

ROOT = Path(__file__).parents[2]


@pytest.fixture
def root(tmp_path):
    """A copy of the playbook and roles, for tests that change them."""
    for name in ("site.yml", "ansible.cfg"):
        shutil.copy(ROOT / name, tmp_path / name)
    shutil.copytree(ROOT / "roles", tmp_path / "roles")
    return tmp_path


def fleet(**changes):
    """Return three hosts in two racks of one pool. changes: variables of all."""
    hosts = {f"w{n}": {"ansible_host": f"10.0.0.{n}", "base_address": f"10.0.0.{n}"} for n in (1, 2, 3)}
    children = {
        "pool_gpu": {"hosts": {host: {} for host in hosts}, "vars": {"kubelet_labels": {"a": "b"}, "base_names": []}},
        "rack_a_r1": {"hosts": {"w1": {}, "w2": {}}, "vars": {}},
        "rack_a_r2": {"hosts": {"w3": {}}, "vars": {}},
    }
    return Inventory("c", {"all": {"vars": {"kubelet_endpoint": "e", **changes}, "hosts": hosts, "children": children}})


def changed(before, after):
    """Return the hosts whose state differs."""
    return {host for host in before if before[host] != after.get(host)}


def test_the_same_inventory_has_the_same_digests_for_every_role(root):
    digests = desired(fleet(), root)
    assert digests == desired(fleet(), root)
    assert set(digests["w1"]) == set(roles(ROOT))


def test_a_variable_of_all_affects_every_host_and_one_of_a_rack_only_its_hosts(root):
    before, rack, host = desired(fleet(), root), fleet(), fleet()
    rack.data["all"]["children"]["rack_a_r1"]["vars"]["base_swap_off"] = False
    host.data["all"]["hosts"]["w3"]["base_address"] = "10.0.0.9"
    assert changed(before, desired(fleet(kubelet_endpoint="f"), root)) == {"w1", "w2", "w3"}
    assert changed(before, desired(rack, root)) == {"w1", "w2"}
    assert changed(before, desired(host, root)) == {"w3"}


def test_an_additional_host_changes_nothing_for_others(root):
    more = fleet()
    more.data["all"]["hosts"]["w4"] = {"base_address": "10.0.0.4"}
    more.data["all"]["children"]["rack_a_r2"]["hosts"]["w4"] = {}
    assert changed(desired(fleet(), root), desired(more, root)) == set()


def test_an_overridden_value_changes_nothing(root):
    """Precedence as in Ansible: groups over all, a later name over an earlier, the host over everything."""
    hidden = fleet(base_names=["hidden by the pool"])
    assert changed(desired(fleet(), root), desired(hidden, root)) == set()
    both = fleet()
    both.data["all"]["children"]["rack_a_r2"]["vars"]["base_names"] = ["x"]
    assert changed(desired(fleet(), root), desired(both, root)) == {"w3"}
    own = fleet()
    own.data["all"]["hosts"]["w3"]["base_names"] = []
    over = fleet()
    over.data["all"]["hosts"]["w3"]["base_names"] = []
    over.data["all"]["children"]["rack_a_r2"]["vars"]["base_names"] = ["hidden by the host"]
    assert changed(desired(own, root), desired(over, root)) == set()


def test_tokens_and_key_paths_are_not_part_of_a_state(root):
    passing = fleet().joining({"w1": "abcdef.0123456789abcdef"})
    passing.data["all"]["vars"]["ansible_ssh_private_key_file"] = "/proc/1/fd/9"
    assert desired(passing, root) == desired(fleet(), root)
    assert "abcdef.0123456789abcdef" not in str(desired(passing, root))


@pytest.mark.parametrize(
    ("name", "concerned"),
    [
        ("roles/flannel/tasks/main.yml", {"flannel"}),
        ("roles/containerd/templates/config.toml.j2", {"containerd"}),
        ("roles/modules/host_state.py", set(roles(ROOT))),
        ("roles/module_utils/menagerie_host/units.py", set(roles(ROOT))),
        ("roles/lookups/host_program.py", set(roles(ROOT))),
        ("site.yml", set(roles(ROOT))),
        ("roles/flannel/README.md", set()),
    ],
)
def test_a_changed_file_of_a_role_affects_only_that_role(root, name, concerned):
    before = desired(fleet(), root)["w1"]
    path = root / name
    path.write_text(path.read_text() + "\n# changed\n") if path.exists() else pytest.fail(f"there is no {name}")
    after = desired(fleet(), root)["w1"]
    assert {role for role in before if before[role] != after[role]} == concerned


def test_with_tags_only_their_roles_are_part_of_the_state(root):
    assert set(desired(fleet(), root, ["base"])["w1"]) == {"base"}
    assert desired(fleet(), root, ["base"])["w1"]["base"] == desired(fleet(), root)["w1"]["base"]
