"""Ansible module: make this host a node of its cluster."""

from __future__ import annotations

DOCUMENTATION = r"""
module: kubelet_join
short_description: Joins a host to its cluster with kubeadm, once
description:
  - Runs C(kubeadm join) on a host that is not a node yet, or whose client certificate has expired.
  - Leaves a node of this cluster alone, and refuses a node of another cluster.
  - Keeps the file with the token under C(/run), in memory, only while C(kubeadm join) runs.
  - Renders the kubelet's configuration again when a patch is newer than it.
  - Computes what the machine reserves for the system, and patches the kubelet's configuration with it.
  - Refuses to join a host whose clock is more than a minute off the API's, and reports both clocks.
  - Refuses to change how pods get CPUs while the node has pods that a drain would move.
  - Records on the Node, with the kubelet's identity, which authorities it trusts and has certificates from.
  - Keeps the modes of kubelet files that CIS 4.1.5 to 4.1.10 require.
options:
  config: {description: JoinConfiguration without its discovery section., type: dict, required: true}
  token: {description: Bootstrap token for this host only. Needed by hosts that are not nodes yet., type: str, default: ""}
  ca_pem: {description: Certificate of the cluster's CA., type: str, required: true}
  serving_ca_pem:
    description: Authorities of kubelets' serving certificates, the signing one first. C(ca_pem) if empty.
    type: str
    default: ""
  endpoint: {description: "host:port of the API servers.", type: str, required: true}
  kubeadm: {description: Path of kubeadm., type: path, default: /usr/local/bin/kubeadm}
  patches: {description: Folder of kubeadm patches., type: path, required: true}
  machine:
    description:
      - Input for the kubelet's share of the machine; if empty, nothing is computed.
      - C(reserve) is whether to keep CPU and memory for the system. C(system_cpu) (thousandths) and
        C(system_memory_mib) of them are for what is neither kubelet nor containerd.
      - Also C(max_pods), C(largest_image_gb), and the policies C(cpu_manager) and C(topology_manager).
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
    description: Units to bring up to date when the host is a node, including the kubelet's. See M(host_state).
    type: list
    elements: dict
    default: []
author: [Menagerie]
"""

EXAMPLES = r"""
- name: Join the host to its cluster
  kubelet_join:
    config: "{{ _kubelet_join_config }}"
    token: "{{ kubelet_token }}"
    ca_pem: "{{ kubelet_ca_pem }}"
    endpoint: 10.32.0.10:6443
    patches: /etc/kubernetes/patches
"""

RETURN = r"""
state: {description: "State of the host before: absent, joined, foreign or expired.", type: str, returned: always}
actions: {description: "What was done, also to units.", type: list, elements: str, returned: always}
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


def desired(params: dict[str, Any]) -> joining.Desired:
    options = {name: params[name] for name in ("config", "ca_pem", "endpoint", "kubeadm", "patches", "machine")}
    return joining.Desired(
        **options, serving_pem=serving_pem(params), token=lambda: str(params["token"]), asks_anew=True
    )


def serving_pem(params: dict[str, Any]) -> str:
    """Return the authorities of serving certificates. Stacks from before there was a separate one export none."""
    return str(params["serving_ca_pem"] or params["ca_pem"])


def converge(params: dict[str, Any], membership: joining.Membership, check: bool) -> list[str]:
    if membership.state == "foreign" and not params["replace"]:
        raise Refused(
            f"this host is a node of another cluster: {membership.reason}; drain it there and run 'kubeadm reset' "
            "on it, or set kubelet_replace to true for this host"
        )
    if membership.state != "joined" and not params["token"] and not check:
        raise Refused(
            "this host is not a node yet and got no join token: its kubelet was running when the run started, or the run "
            "joins no hosts; run 'menagerie configure' again"
        )
    actions = joining.converge(desired(params), membership, check) + units.converge(params["units"], check).actions
    if check and membership.state != "joined":
        return actions
    return actions + joining.announce(
        params["endpoint"], serving_pem(params), check, joined=membership.state != "joined"
    )


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
            membership = joining.membership(module.params["ca_pem"], module.params["endpoint"], time.time())
            actions = converge(module.params, membership, check)
    except Refused as error:
        module.fail_json(msg=str(error))
    module.exit_json(changed=bool(actions), state=membership.state, reason=membership.reason, actions=actions)


if __name__ == "__main__":
    main()
