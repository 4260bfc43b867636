"""What each test runs: the tables that mark tests, and how real the parts of each test are (docs/reference/proof.md)."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

TESTS = Path(__file__).parent

Level = Literal["lab", "programs", "engine", "pure"]
WORDS: dict[Level, str] = {
    "lab": "real parts, a whole cluster in the lab",
    "programs": "real programs",
    "engine": "real Pulumi engine, simulated cloud",
    "pure": "no program: functions, with fakes of their surroundings",
}

# Folder or file -> the group whose tests share what an engine has created. One process runs the whole group.
UNDER_THE_ENGINE = {
    "provisioning/test_emulator.py": "redfish",
    "operations/keys/test_front_proxy.py": "keys",
    "operations/keys/test_kubelet_serving.py": "keys",
    "operations/keys/test_kubernetes_authority.py": "keys",
    "operations/keys/test_published.py": "keys",
    "operations/keys/test_rotation.py": "keys",
    "operations/existence": "existence",
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
    "validation/test_whole_clusters.py": "validation-whole",
}

# Files whose tests run programs (etcd, API servers, Ansible, BMCs, the command itself). Each takes seconds, and mostly waits.
# The ones in this list have time limits: elections, leases, turns, dead peers.
_TIMED_PROGRAMS = (
    "cli/test_interrupts.py",
    "controllers/test_command.py",
    "controllers/test_program.py",
    "controllers/test_rights.py",
    "etcd/test_backups_on_hosts.py",
    "etcd/test_real_etcd.py",
    "operations/record",
    "operations/test_audit.py",
    "operations/test_audit_logs.py",
    "operations/test_backups.py",
    "operations/test_drain.py",
    "operations/test_etcd_roll.py",
    "operations/test_etcds.py",
    "operations/test_etcds_broken.py",
    "operations/test_reboot.py",
    "operations/test_reboot_command.py",
    "operations/test_repair.py",
    "operations/test_repair_brakes.py",
    "operations/test_repair_command.py",
    "operations/test_trials.py",
    "operations/test_upgrade_nodes.py",
    "preflight/test_real_api.py",
    "provisioning/test_repair_power.py",
    "scheduling/autoscaler/test_command.py",
    "scheduling/autoscaler/test_real_api.py",
    "tenancy/test_ldap.py",
    "userdata/test_apply_in_turn.py",
    "userdata/test_turns.py",
)
WITH_PROGRAMS = (
    *_TIMED_PROGRAMS,
    "bench/test_injections.py",
    "bench/test_workers.py",
    "ceph/test_policies_api.py",
    "ceph/test_storage_host_role.py",
    "cli/test_forks.py",
    "cli/test_hostile_input.py",
    "cli/test_streams.py",
    "cluster/test_fuzz.py",
    "control_plane/test_bucket.py",
    "control_plane/test_csi_api.py",
    "control_plane/test_metrics_keys.py",
    "control_plane/test_metrics_server.py",
    "control_plane/test_node_policies.py",
    "control_plane/test_real_joining.py",
    "control_plane/test_releases.py",
    "control_plane/test_report.py",
    "control_plane/test_serving_certificates.py",
    "inventories/test_run.py",
    "lab_unit/test_buckets.py",
    "node_metrics/test_node_exporter.py",
    "operations/bundles",
    "operations/test_node_labels.py",
    "operations/test_upgrade_releases.py",
    "remote/test_ssh.py",
    "roles/test_boot.py",
    "roles/test_firewall_role.py",
    "roles/test_gpu_and_preflight_plays.py",
    "roles/test_hardening_role.py",
    "roles/test_links_role.py",
    "roles/test_node_metrics_role.py",
    "roles/test_roce_role.py",
    "roles/test_time_role.py",
    "scheduling/test_real_gangs.py",
    "scheduling/test_real_scheduler.py",
    "tenancy/test_admission.py",
    "tenancy/test_borrowing.py",
    "tenancy/test_capacity_api.py",
    "tenancy/test_capacity_command.py",
    "tenancy/test_capacity_releases.py",
    "tenancy/test_command.py",
    "tenancy/test_priorities.py",
    "tenancy/test_real_api.py",
    "tenancy/test_real_counts.py",
    "web/test_browser.py",
    "web/test_command.py",
    "web/test_real_api.py",
    "workers/test_as_ansible.py",
)

TIMED = frozenset({"keys", "redfish", *_TIMED_PROGRAMS})
"""Engine groups and files that `make test` runs in the foreground, before the lab. All others run next to these and to the
lab, with a small share of the CPU (`tests/beside.py`)."""


def timed_places() -> tuple[str, ...]:
    """Return the files and folders of all timed tests: those of TIMED, and files that mark themselves as timed."""
    groups = {place for place, group in UNDER_THE_ENGINE.items() if group in TIMED}
    marked = {file for file in TESTS.rglob("test_*.py") if "pytest.mark.timed," in file.read_text()}
    return tuple(sorted({*groups, *_TIMED_PROGRAMS, *(file.relative_to(TESTS).as_posix() for file in marked)}))


def is_under(place: str, under: str) -> bool:
    return place == under or place.startswith(f"{under}/")


_CLOUDS = ("stacks", "simcloud", "validation")
"""Folders where the mark `engine` means a simulated cloud. Elsewhere it means programs of hosts or BMCs."""


@dataclass(frozen=True)
class TestFunction:
    """A test function. place: its file below tests/. soak: whether all of its items run only in `make soak`."""

    place: str
    name: str
    level: Level
    soak: bool


@cache
def functions() -> tuple[TestFunction, ...]:
    """Return every test function of the project, by file and name. Sources are parsed, not imported."""
    return tuple(each for file in sorted(TESTS.rglob("test_*.py")) for each in _of_file(file))


def _of_file(file: Path) -> Iterator[TestFunction]:
    place, tree = file.relative_to(TESTS).as_posix(), ast.parse(file.read_text())
    shared_marks = {mark for node in tree.body if _is_pytestmark(node) for mark in _marks(node)}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            marks = shared_marks | {mark for decorator in node.decorator_list for mark in _marks(decorator)}
            # A mark of single parameters is not one of the function.
            own = shared_marks | {
                decorator.attr for decorator in node.decorator_list if isinstance(decorator, ast.Attribute)
            }
            yield TestFunction(place, node.name, _level(place, marks), "soak" in own)


def _is_pytestmark(node: ast.stmt) -> bool:
    return isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == "pytestmark" for t in node.targets)


def _marks(node: ast.AST) -> set[str]:
    return {
        each.attr
        for each in ast.walk(node)
        if isinstance(each, ast.Attribute) and ast.unparse(each.value) == "pytest.mark"
    }


def _level(place: str, marks: set[str]) -> Level:
    if "lab" in marks:
        return "lab"
    if "engine" in marks or any(is_under(place, each) for each in UNDER_THE_ENGINE):
        return "engine" if place.split("/")[0] in _CLOUDS else "programs"
    return "programs" if "programs" in marks or any(is_under(place, each) for each in WITH_PROGRAMS) else "pure"


if __name__ == "__main__":
    print(*(f"{TESTS.name}/{place}" for place in timed_places()))
