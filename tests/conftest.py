"""The lab's cluster, and variations of it, built from the model without the loader's checks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import settings

import cli  # noqa: F401 - before gRPC starts, as in the command
from cluster.pools import HostsFile
from cluster.spec import Cluster, ClusterSpec
from tests.digests import with_digests

# Machines are shared: how long one example takes says nothing.
settings.register_profile("menagerie", deadline=None)
settings.load_profile("menagerie")

LAB = Path(__file__).parents[1] / "inventories" / "lab"


def _merged(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    both = dict(base)
    for key, value in changes.items():
        nested = isinstance(value, Mapping) and isinstance(base.get(key), Mapping)
        both[key] = _merged(base[key], value) if nested else value
    return {key: value for key, value in both.items() if value is not None}


@pytest.fixture(scope="session")
def build() -> Callable[..., Cluster]:
    """build({"etcd": {"main": {"members": 5}}}): the lab with these fields changed. Mappings are
    merged, everything else is replaced, and None takes a field away. Its pool in the region, its links and its storage
    are left out: who wants some says which."""
    spec = yaml.safe_load((LAB / "cluster.yaml").read_text())
    spec["pools"] = {name: pool for name, pool in spec["pools"].items() if "site" in pool}
    for site in spec["sites"].values():
        del site["links"], site["ceph"]
    hosts = HostsFile.model_validate(yaml.safe_load((LAB / "hosts.yaml").read_text())).hosts
    hosts = tuple(host.model_copy(update={"links": {}}) for host in hosts)

    def built(changes: Mapping[str, Any] | None = None, hosts_by_pool: Mapping[str, Any] | None = None) -> Cluster:
        chosen = {"workers": hosts} if hosts_by_pool is None else dict(hosts_by_pool)
        return Cluster(spec=with_digests(ClusterSpec.model_validate(_merged(spec, changes or {}))), hosts=chosen)

    return built


@pytest.fixture(scope="session")
def lab(build: Callable[..., Cluster]) -> Cluster:
    return build()


# Folder or file -> the group whose tests share what an engine has made: one process has them all.
_UNDER_THE_ENGINE = {
    "provisioning/test_emulator.py": "redfish",
    "operations/keys/test_front_proxy.py": "keys",
    "operations/keys/test_kubelet_serving.py": "keys",
    "operations/keys/test_kubernetes_authority.py": "keys",
    "operations/keys/test_published.py": "keys",
    "operations/keys/test_rotation.py": "keys",
    "operations/test_existence.py": "existence",
    "operations/test_plugins.py": "existence",
    "stacks/aws": "aws",
    "stacks/azure": "azure",
    "stacks/gcp": "gcp",
    "stacks/test_engine.py": "engine",
    "stacks/test_secrets_provider.py": "engine",
    "stacks/test_plain_cli.py": "plain",
    "stacks/test_policy_pack.py": "policies",
    "simcloud/test_engine.py": "simcloud",
    "simcloud/test_interruptions.py": "simcloud",
    "validation/test_stages.py": "validation",
    "validation/test_fleet.py": "validation",
}

# Groups that take longest, to be begun first; the others follow as they stand.
_FIRST = ("keys", "vpn")

# Files whose tests run programs (etcd, API servers, Ansible, BMCs, the command itself): seconds each, most of them spent waiting.
_WITH_PROGRAMS = (
    "bench/test_workers.py",
    "ceph/test_policies_api.py",
    "ceph/test_storage_host_role.py",
    "cli/test_forks.py",
    "cli/test_hostile_input.py",
    "cli/test_interrupts.py",
    "cli/test_streams.py",
    "cluster/test_fuzz.py",
    "controllers/test_command.py",
    "controllers/test_program.py",
    "controllers/test_rights.py",
    "control_plane/test_bucket.py",
    "control_plane/test_csi_api.py",
    "control_plane/test_node_policies.py",
    "control_plane/test_real_joining.py",
    "control_plane/test_releases.py",
    "control_plane/test_report.py",
    "control_plane/test_serving_certificates.py",
    "etcd/test_backups_on_hosts.py",
    "etcd/test_real_etcd.py",
    "inventories/test_run.py",
    "lab_unit/test_buckets.py",
    "operations/record",
    "operations/test_audit.py",
    "operations/test_audit_logs.py",
    "operations/test_backups.py",
    "operations/test_drain.py",
    "operations/test_etcd_roll.py",
    "operations/test_etcds.py",
    "operations/test_etcds_broken.py",
    "operations/test_node_labels.py",
    "operations/test_reboot.py",
    "operations/test_reboot_command.py",
    "operations/test_repair.py",
    "operations/test_repair_brakes.py",
    "operations/test_repair_command.py",
    "operations/test_trials.py",
    "operations/test_upgrade_nodes.py",
    "operations/test_upgrade_releases.py",
    "preflight/test_real_api.py",
    "provisioning/test_repair_power.py",
    "roles/test_boot.py",
    "roles/test_firewall_role.py",
    "roles/test_gpu_and_preflight_plays.py",
    "roles/test_hardening_role.py",
    "roles/test_links_role.py",
    "roles/test_roce_role.py",
    "roles/test_time_role.py",
    "scheduling/autoscaler/test_command.py",
    "scheduling/autoscaler/test_real_api.py",
    "scheduling/test_real_gangs.py",
    "scheduling/test_real_scheduler.py",
    "tenancy/test_admission.py",
    "tenancy/test_borrowing.py",
    "tenancy/test_capacity_api.py",
    "tenancy/test_capacity_command.py",
    "tenancy/test_capacity_releases.py",
    "tenancy/test_command.py",
    "tenancy/test_ldap.py",
    "tenancy/test_priorities.py",
    "tenancy/test_real_api.py",
    "tenancy/test_real_counts.py",
    "userdata/test_apply_in_turn.py",
    "userdata/test_turns.py",
    "workers/test_as_ansible.py",
)

_SLOW_S = 600
"""The first test of a group also waits for what all of them share."""


def _is_under(place: str, under: str) -> bool:
    return place == under or place.startswith(f"{under}/")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes minutes is no part of the fast set. The lab goes down after the last test that uses it."""
    items.sort(key=lambda item: item.path.name == "test_9_down.py")
    root = Path(__file__).parent
    for item in items:
        place = item.path.relative_to(root).as_posix()
        for under, group in _UNDER_THE_ENGINE.items():
            if _is_under(place, under):
                item.add_marker(pytest.mark.engine)
                item.add_marker(pytest.mark.xdist_group(group))
        for under in _WITH_PROGRAMS:
            if _is_under(place, under):
                item.add_marker(pytest.mark.programs)
                if not item.get_closest_marker("xdist_group"):
                    item.add_marker(pytest.mark.xdist_group(under))
        slow = item.get_closest_marker("engine") or item.get_closest_marker("programs")
        if slow and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(_SLOW_S))
    items.sort(key=_is_begun_later)


def _is_begun_later(item: pytest.Item) -> int:
    group = item.get_closest_marker("xdist_group")
    return _FIRST.index(group.args[0]) if group and group.args and group.args[0] in _FIRST else len(_FIRST)
