"""Ansible module: this host is a node of this cluster."""

from __future__ import annotations

DOCUMENTATION = r"""
module: kubelet_join
short_description: Joins a host to its cluster with kubeadm, once
description:
  - Runs C(kubeadm join) on a host that is no node yet, or whose client certificate has run out.
  - Leaves a node of this cluster alone, and refuses a node of another one.
  - The file with the token lives under C(/run), in memory, for as long as C(kubeadm join) runs.
  - Renders the kubelet's configuration again when a patch is newer than it.
  - Computes what the system keeps of the machine, and patches the kubelet's configuration with it.
  - Refuses, with both clocks, a host whose clock is more than a minute from the API's when it would join.
  - Refuses to change how CPUs are given to pods while the node has pods that a drain would move.
  - Writes, with the kubelet's identity, onto the node's own Node which authorities it trusts and has certificates of.
  - Keeps the modes of kubelet files that CIS 4.1.5 to 4.1.10 asks for.
options:
  config: {description: JoinConfiguration without its discovery., type: dict, required: true}
  token: {description: Bootstrap token for this very host. Needed by hosts that are no nodes yet., type: str, default: ""}
  ca_pem: {description: Certificate of the cluster's CA., type: str, required: true}
  serving_ca_pem:
    description: Certificates of the authorities that sign kubelets' serving certificates, the one that signs first. C(ca_pem) without.
    type: str
    default: ""
  endpoint: {description: "host:port of the API servers.", type: str, required: true}
  kubeadm: {description: Path of kubeadm., type: path, default: /usr/local/bin/kubeadm}
  patches: {description: Folder of kubeadm patches., type: path, required: true}
  machine:
    description:
      - What the kubelet's share of the machine is computed from; nothing is computed without.
      - C(reserve) whether CPU and memory are kept for the system, of which C(system_cpu) (thousandths) and
        C(system_memory_mib) are for what is neither kubelet nor containerd.
      - C(max_pods), C(largest_image_gb), and the policies C(cpu_manager) and C(topology_manager).
    type: dict
    default: {}
    suboptions:
      reserve: {description: See above., type: bool, required: true}
      system_cpu: {description: See above., type: int, required: true}
      system_memory_mib: {description: See above., type: int, required: true}
      max_pods: {description: See above., type: int, required: true}
      largest_image_gb: {description: See above., type: int, required: true}
      cpu_manager: {description: See above., type: str, required: true}
      topology_manager: {description: See above., type: str, required: true}
  replace: {description: Reset a node of another cluster and join this one., type: bool, default: false}
  units:
    description: Units to bring up to date once the host is a node, the kubelet's among them. See M(host_state).
    type: list
    elements: dict
    default: []
author: [Menagerie]
"""

EXAMPLES = r"""
- name: Node of its cluster
  kubelet_join:
    config: "{{ _kubelet_join_config }}"
    token: "{{ kubelet_token }}"
    ca_pem: "{{ kubelet_ca_pem }}"
    endpoint: 10.32.0.10:6443
    patches: /etc/kubernetes/patches
"""

RETURN = r"""
state: {description: "What the host was: absent, joined, foreign or expired.", type: str, returned: always}
actions: {description: "What was done, to units too.", type: list, elements: str, returned: always}
"""

import contextlib
import time
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.menagerie_host import Refused, joining, units

MACHINE = {
    "reserve": {"type": "bool", "required": True},
    "system_cpu": {"type": "int", "required": True},
    "system_memory_mib": {"type": "int", "required": True},
    "max_pods": {"type": "int", "required": True},
    "largest_image_gb": {"type": "int", "required": True},
    "cpu_manager": {"type": "str", "required": True},
    "topology_manager": {"type": "str", "required": True},
}


def wanted(params: dict[str, Any]) -> joining.Wanted:
    words = {name: params[name] for name in ("config", "ca_pem", "endpoint", "kubeadm", "patches", "machine")}
    return joining.Wanted(**words, serving_pem=serving_pem(params), token=lambda: str(params["token"]), asks_anew=True)


def serving_pem(params: dict[str, Any]) -> str:
    """A stack that was built before there was another authority for serving certificates tells of none."""
    return str(params["serving_ca_pem"] or params["ca_pem"])


def converge(params: dict[str, Any], found: joining.Membership, check: bool) -> list[str]:
    if found.state == "foreign" and not params["replace"]:
        raise Refused(
            f"this host is a node of another cluster: {found.reason}; drain it there and run 'kubeadm reset' "
            "on it, or set kubelet_replace to true for this host"
        )
    if found.state != "joined" and not params["token"] and not check:
        raise Refused(
            "this host is no node yet and no join token was given: its kubelet was at work when the run began, or the run joins "
            "nobody; run 'menagerie configure' again"
        )
    actions = joining.converge(wanted(params), found, check) + units.converge(params["units"], check).actions
    if check and found.state != "joined":
        return actions
    return actions + joining.announce(params["endpoint"], serving_pem(params), check, joined=found.state != "joined")


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "config": {"type": "dict", "required": True},
            "token": {"type": "str", "default": "", "no_log": True},
            "ca_pem": {"type": "str", "required": True},
            "serving_ca_pem": {"type": "str", "default": ""},
            "endpoint": {"type": "str", "required": True},
            "kubeadm": {"type": "path", "default": "/usr/local/bin/kubeadm"},
            "patches": {"type": "path", "required": True},
            "machine": {"type": "dict", "default": {}, "options": MACHINE},
            "replace": {"type": "bool", "default": False},
            "units": {"type": "list", "elements": "dict", "default": [], "options": units.OPTIONS},
        },
        supports_check_mode=True,
    )
    check = module.check_mode
    try:
        with contextlib.nullcontext() if check else joining.one_at_a_time():
            found = joining.membership(module.params["ca_pem"], module.params["endpoint"], time.time())
            actions = converge(module.params, found, check)
    except Refused as error:
        module.fail_json(msg=str(error))
    module.exit_json(changed=bool(actions), state=found.state, reason=found.reason, actions=actions)


if __name__ == "__main__":
    main()
