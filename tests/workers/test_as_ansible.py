"""Workers get the same from user data as from Ansible: one run of the real playbook is recorded and not executed."""

from __future__ import annotations

import json
import shutil
from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest
import yaml

from cluster.outputs import ArtefactOutput, ClusterOutputs
from components.workers import roles
from components.workers.render import OWN_ADDRESS, OWN_NAME, in_region
from components.workers.roles import ORDER, declarations
from inventories.build import Inventory, build
from inventories.run import run
from network.addresses import plan

ROOT = Path(__file__).parents[2]

# A module that records its arguments, with the name of one of Menagerie's modules.
NOTING = """
import json, os, sys
from ansible.module_utils.basic import _load_params

if __name__ == "__main__":
    params = {key: value for key, value in _load_params().items() if not key.startswith("_ansible")}
    with open("FOLDER/notes", "a") as out:
        out.write(json.dumps(["MODULE", os.environ["NOTED_HOST"], params]) + "\\n")
    sys.exit(print(json.dumps({"changed": False})))
"""

EVERY_OTHER = {
    "base_name": "w-3",
    "base_kernel_modules": ["overlay", "nf_conntrack"],
    "base_swap_off": False,
    "base_unsettable": "report",
    "containerd_systemd_cgroup": False,
    "containerd_oom_score_adjust": 0,
    "containerd_registry_scheme": "http",
    "containerd_extra_config": "version = 4\n\n[a]\n  b = true\n",
    "containerd_registry_mirrors": {"docker.io": ["a:1", "b:2"], "_default": "c:3"},
    "containerd_registry_ca": "-----BEGIN",
    "containerd_max_unpacks": 4,
    "kubelet_cpu_manager": "static",
    "kubelet_reserve": False,
    "kubelet_config_patch": {"failSwapOn": False, "cgroupDriver": "cgroupfs", "systemReserved": {"cpu": "1"}},
    "kubelet_extra_args": {"v": "2", "node-ip": "::"},
    "kubelet_ignore_preflight": ["Swap"],
    "kubelet_labels": {},
    "kubelet_follower": "",
    "flannel_kubeconfig": "/etc/other.conf",
    "node_metrics_folder": "/srv/metrics",
    "node_metrics_units": ["containerd.service"],
    "node_metrics_every": "30s",
}
"""Variables that an operator may set, each different from its default or computed value."""


# Ansible runs the first one wherever it treats a text as a template; Jinja without a sandbox runs the second.
PIPE = "{{ lookup('ansible.builtin.pipe', 'touch CANARY') }}{% if true %}$(touch CANARY){% endif %}"
ESCAPE = "{{ lipsum.__globals__['os'].popen('touch CANARY').read() }}"


def hostile(values: Any, text: str, choices: Collection[str] = (), name: str = "") -> Any:
    """Return values with `text` appended to each text, except for variables that take one word of a list (`choices`)."""
    if isinstance(values, str):
        return values if name in choices else f"{values}{text}"
    if isinstance(values, dict):
        return {key: hostile(value, text, choices, name or key) for key, value in values.items()}
    return [hostile(value, text, choices, name) for value in values] if isinstance(values, list) else values


def chosen() -> set[str]:
    """Return the roles' variables that take one of a few words."""
    specs = [yaml.safe_load(path.read_text()) for path in ROOT.glob("roles/*/meta/argument_specs.yml")]
    options = [each for spec in specs for each in spec["argument_specs"]["main"]["options"].items()]
    return {name for name, option in options if "choices" in option}


@pytest.fixture(scope="module")
def canary(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("canary") / "ran"


@pytest.fixture(scope="module")
def outputs(hybrid, source) -> ClusterOutputs:
    return ClusterOutputs(
        cluster=hybrid.name,
        endpoint="api.horus.internal:6443",
        balancers=("10.32.0.4",),
        konnectivity="api.horus.internal:8132",
        ca_pem="-----BEGIN CERTIFICATE-----\nMII=\n-----END CERTIFICATE-----\n",
        api_servers=(),
        etcds={},
        artefacts=ArtefactOutput(mirror=source.mirror, sha256=dict(source.sha256), registry=source.registry),
    )


@pytest.fixture(scope="module")
def given(hybrid, outputs, source, canary) -> dict[str, dict[str, object]]:
    """Return host -> its variables: a worker at a site, one with every setting changed, and one in the region."""
    data = build(hybrid, outputs).data["all"]
    pool = data["children"]["pool_workers"]
    (first, *_) = pool["hosts"]
    not_in_region = {"time_enabled": False, "firewall_enabled": False, "hardening_enabled": False}
    site = {**not_in_region, **data["vars"], **pool["vars"], **data["hosts"][first]}
    # Only hosts at sites check themselves and have a boot loader that Menagerie configures.
    del site["preflight_expected"], site["boot_words"]
    own = {name: OWN_NAME for name in ("base_name", "flannel_node_name", "kubelet_node_name")}
    region = {**not_in_region, **in_region(hybrid, "cpu", plan(hybrid), source), **own}
    del region["inventory_hostname"]
    other = {**site, **EVERY_OTHER}
    bad = hostile(other, PIPE.replace("CANARY", str(canary)), chosen())
    return {"site": site, "other": other, "region": region, "hostile": bad}


@pytest.fixture(scope="module")
def recorded(given, tmp_path_factory) -> dict[str, list[tuple[str, dict[str, object]]]]:
    """Return host -> (module, arguments) of every task of site.yml, as the real ansible-playbook called them."""
    root = tmp_path_factory.mktemp("root")
    (root / "modules").mkdir()
    for module in ("host_state", "kubelet_join"):
        text = NOTING.replace("MODULE", module).replace("FOLDER", str(root))
        (root / "modules" / f"{module}.py").write_text(text)
    shutil.copytree(ROOT / "roles", root / "roles", ignore=shutil.ignore_patterns("modules", "module_utils"))
    header = "hosts: all\n  environment: {NOTED_HOST: '{{ inventory_hostname }}'}\n"
    (root / "site.yml").write_text((ROOT / "site.yml").read_text().replace("hosts: all\n", header))
    (root / "ansible.cfg").write_text(
        "[defaults]\nroles_path = roles\nlibrary = modules\nlookup_plugins = roles/lookups\n"
    )
    connection = {"ansible_connection": "local", "ansible_python_interpreter": "/usr/bin/python3"}
    own = {"ansible_host", "ansible_port", "ansible_user", "ansible_python_interpreter"}
    hosts = {host: {k: v for k, v in values.items() if k not in own} for host, values in given.items()}
    # Besides the roles' variables, the connection variables: Ansible evaluates them for each task.
    hosts["hostile"] |= {
        name: given["hostile"]["kubelet_endpoint"] for name in ("ansible_user", "ansible_ssh_private_key_file")
    }
    data = {"vars": connection, "hosts": hosts, "children": {}}
    report = run(Inventory("horus", {"all": data}), root=root)
    assert report.succeeded, report.failures
    calls: dict[str, list[tuple[str, dict[str, object]]]] = {host: [] for host in given}
    for line in (root / "notes").read_text().splitlines():
        module, host, arguments = json.loads(line)
        calls[host].append((module, arguments))
    return calls


@pytest.mark.parametrize("host", ["site", "other", "region", "hostile"])
def test_every_task_of_the_roles_is_evaluated_like_in_ansible(given, recorded, host):
    ours = declarations({"inventory_hostname": host, **given[host]})
    assert [(each.module, each.arguments) for each in ours] == recorded[host]
    assert len(recorded[host]) == 7


def test_no_text_in_a_workers_variables_is_executed_by_ansible(recorded, canary):
    assert str(canary) in json.dumps(recorded["hostile"])
    assert not canary.exists()


def test_no_text_in_a_workers_variables_is_executed_by_the_renderer_for_the_region(given, canary):
    variables = hostile(given["region"], ESCAPE.replace("CANARY", str(canary)), chosen())
    assert str(canary) in json.dumps(
        [each.arguments for each in declarations({"inventory_hostname": "w", **variables})]
    )
    assert not canary.exists()


def test_the_roles_are_in_the_order_of_the_playbook():
    (play,) = yaml.safe_load((ROOT / "site.yml").read_text())
    # Clocks, firewall rules and hardware of a site's machines; in the region the cloud provides them.
    at_sites_only = {"boot", "firewall", "gpu", "hardening", "links", "preflight", "roce", "storage_host", "time"}
    assert tuple(role["role"] for role in play["roles"] if role["role"] not in at_sites_only) == ORDER
    of_routers = {"vpn_gateway"}
    assert {path.parent.parent.name for path in ROOT.glob("roles/*/tasks/main.yml")} == {
        *ORDER,
        *at_sites_only,
        *of_routers,
    }


def test_a_task_with_another_module_is_refused(monkeypatch, tmp_path):
    (tmp_path / "base" / "tasks").mkdir(parents=True)
    (tmp_path / "base" / "tasks" / "main.yml").write_text("- name: x\n  ansible.builtin.command: 'true'\n")
    monkeypatch.setattr(roles, "FOLDER", tmp_path)
    with pytest.raises(ValueError, match="module ansible.builtin.command works only with Ansible"):
        declarations({})


def test_variables_of_the_region_and_a_site_differ_only_in_those_of_the_host_and_the_network(given):
    site, region = given["site"], given["region"]
    differing = {name for name in {*site, *region} if site.get(name) != region.get(name)}
    own = {"base_name", "flannel_node_name", "kubelet_node_name", "base_address", "flannel_address", "kubelet_node_ip"}
    ansible = {name for name in site if name.startswith("ansible_")} | {"kubelet_token", "base_names"}
    # The cloud's security groups are made from the same table.
    ansible |= {name for name in site if name.startswith("firewall_")}
    pool = {"kubelet_labels", "kubelet_taints"}
    network = {"neighbours_files", "flannel_files", "flannel_commands"}
    # The CA comes from the store; at sites Ansible sends it.
    assert differing - ansible - pool == {*own, *network, "kubelet_ca_pem"}
    texts = {host: given[host]["flannel_files"][0]["text"] for host in ("site", "region")}
    confs = {host: json.loads(text) for host, text in texts.items()}
    assert [confs[host]["Backend"].pop("DirectRouting") for host in ("site", "region")] == [True, False]
    assert [confs[host].pop("EnableNFTables") for host in ("site", "region")] == [True, False]
    assert confs["site"] == confs["region"]
    assert (region["flannel_address"], region["kubelet_node_ip"]) == (OWN_ADDRESS, OWN_ADDRESS)
