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
  - Keeps the modes of kubelet files that CIS 4.1.5 to 4.1.10 asks for.
options:
  config: {description: JoinConfiguration without its discovery., type: dict, required: true}
  token: {description: Bootstrap token. Needed by hosts that are no nodes yet., type: str, default: ""}
  ca_pem: {description: Certificate of the cluster's CA., type: str, required: true}
  endpoint: {description: "host:port of the API servers.", type: str, required: true}
  kubeadm: {description: Path of kubeadm., type: path, default: /usr/local/bin/kubeadm}
  patches: {description: Folder of kubeadm patches., type: path, required: true}
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

import base64
import binascii
import contextlib
import fcntl
import glob
import json
import os
import re
import ssl
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.menagerie_host import Refused, units

KUBELET_CONF = "/etc/kubernetes/kubelet.conf"
BOOTSTRAP_CONF = "/etc/kubernetes/bootstrap-kubelet.conf"
CA = "/etc/kubernetes/pki/ca.crt"
KUBELET_CONFIG = "/var/lib/kubelet/config.yaml"
CLIENT_CERTIFICATE = "/var/lib/kubelet/pki/kubelet-client-current.pem"
RUN = "/run/menagerie"
# Seconds. The controller manager calls a silent node NotReady after 50 s (--node-monitor-grace-period) at the latest;
# kubeadm refuses a host while its former Node is Ready.
NODE_GRACE = 90
# CIS 4.1.5 to 4.1.10; kubeadm writes the kubelet's configuration with 0644.
MODES = {KUBELET_CONF: 0o600, CA: 0o644, KUBELET_CONFIG: 0o600, "/var/lib/kubelet/instance-config.yaml": 0o600}


class Membership(NamedTuple):
    """absent, joined, foreign or expired; `reason` says why, for a human."""

    state: str
    reason: str = ""


def seconds_left(certificate: str, now: float) -> float:
    """Seconds until the first certificate of a PEM file runs out. OSError when it can't be read."""
    # The standard library reads a certificate's dates only through this function; ssl.SSLContext lists CAs alone.
    decoded = ssl._ssl._test_decode_cert(certificate)  # type: ignore[attr-defined]
    return ssl.cert_time_to_seconds(decoded["notAfter"]) - now


def membership(ca_pem: str, endpoint: str, now: float) -> Membership:
    """What this host is, read from the kubelet's kubeconfig and certificate."""
    try:
        with open(KUBELET_CONF) as handle:
            text = handle.read()
    except FileNotFoundError:
        return Membership("absent")
    ca = re.search(r"certificate-authority-data: *(\S+)", text)
    server = re.search(r"server: *https://(\S+)", text)
    try:
        own_ca = base64.b64decode(ca[1], validate=True).decode() if ca else ""
    except (binascii.Error, ValueError):
        own_ca = ""
    if own_ca.split() != ca_pem.split():
        return Membership("foreign", f"its CA isn't this cluster's; it talks to {server[1] if server else 'no server'}")
    if server and server[1] != endpoint:
        return Membership("foreign", f"it talks to {server[1]}, this cluster's API is at {endpoint}")
    try:
        left = seconds_left(CLIENT_CERTIFICATE, now)
    except (OSError, ssl.SSLError):
        return Membership("expired", "it has no readable client certificate")
    return Membership("joined") if left > 0 else Membership("expired", "its client certificate has run out")


def patches_are_newer(folder: str) -> bool:
    """Whether a patch was added, altered or removed after the kubelet's configuration was rendered."""
    if not os.path.isdir(folder) or not os.path.exists(KUBELET_CONFIG):
        return False
    written = max(os.stat(path).st_mtime for path in [folder, *glob.glob(os.path.join(folder, "*"))])
    return written > os.stat(KUBELET_CONFIG).st_mtime


def wrong_modes() -> dict[str, int]:
    return {p: m for p, m in MODES.items() if os.path.exists(p) and os.stat(p).st_mode & 0o7777 != m}


def remove(*paths: str) -> None:
    for path in paths:
        if os.path.lexists(path):
            os.unlink(path)


def why(output: str) -> str:
    """The reason in kubeadm's output: what follows its first word of an error, without the table of checks before."""
    lines = [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in output.splitlines() if line.strip()]
    first = next((i for i, line in enumerate(lines) if line.startswith(("error", "[ERROR"))), max(0, len(lines) - 15))
    return "\n".join(line for line in lines[first:] if "stack trace" not in line)


def run(module: AnsibleModule, command: list[str]) -> None:
    code, out, error = module.run_command(command)
    if code:
        module.fail_json(msg=f"kubeadm {command[1]}: {why(out + error)}")


def join(module: AnsibleModule) -> None:
    """Join, and wait for a Node that an earlier life of this host left: it stays Ready until its lease runs out."""
    deadline = time.monotonic() + NODE_GRACE
    while True:
        code, output = try_join(module)
        if not code:
            return
        if 'status "Ready" already exists' not in output or time.monotonic() > deadline:
            module.fail_json(msg=f"kubeadm join: {why(output)}")
        time.sleep(5)


def try_join(module: AnsibleModule) -> tuple[int, str]:
    """kubeadm refuses a host where an earlier join was cut off; what that left is removed first."""
    params = module.params
    module.run_command(["systemctl", "stop", "kubelet.service"])
    remove(*glob.glob(os.path.join(RUN, "join-*.yaml")))
    remove(KUBELET_CONF, BOOTSTRAP_CONF, CA, *glob.glob("/var/lib/kubelet/pki/kubelet-client-*"))
    try:
        discovery = written("discovery", discovery_kubeconfig(params["ca_pem"], params["endpoint"], params["token"]))
        found = {"file": {"kubeConfigPath": discovery}, "tlsBootstrapToken": params["token"]}
        path = written("config", {**params["config"], "discovery": found})
        code, out, error = module.run_command([params["kubeadm"], "join", "--config", path])
        return code, out + error
    finally:
        remove(*glob.glob(os.path.join(RUN, "join-*.yaml")))


def discovery_kubeconfig(ca_pem: str, endpoint: str, token: str) -> dict[str, Any]:
    """What kubeadm needs to trust the API server. It then asks nothing as nobody, which the API refuses."""
    ca = base64.b64encode(ca_pem.encode()).decode()
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "it", "cluster": {"server": f"https://{endpoint}", "certificate-authority-data": ca}}],
        "users": [{"name": "joining", "user": {"token": token}}],
        "contexts": [{"name": "join", "context": {"cluster": "it", "user": "joining"}}],
        "current-context": "join",
    }


def written(name: str, content: dict[str, Any]) -> str:
    """A file in memory that only root reads; its path."""
    handle, path = tempfile.mkstemp(prefix=f"join-{name}-", suffix=".yaml", dir=RUN)
    with os.fdopen(handle, "w") as stream:
        json.dump(content, stream)
    return path


@contextlib.contextmanager
def one_at_a_time() -> Iterator[None]:
    """A run that was killed may have left its kubeadm working here: wait for it, its result counts."""
    os.makedirs(RUN, mode=0o700, exist_ok=True)
    with open(os.path.join(RUN, "join.lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def render_configuration(module: AnsibleModule) -> None:
    phase = ["upgrade", "node", "phase", "kubelet-config", "--patches", module.params["patches"]]
    run(module, [module.params["kubeadm"], *phase, "--kubeconfig", KUBELET_CONF])


def steps(module: AnsibleModule, found: Membership) -> list[tuple[str, Callable[[], None]]]:
    """(name, action) of what the host needs, in order."""
    needed: list[tuple[str, Callable[[], None]]] = []
    if found.state == "foreign":
        reset = [module.params["kubeadm"], "reset", "--force", "--cleanup-tmp-dir"]
        needed.append(("reset", lambda: run(module, reset)))
    if found.state != "joined":
        return [*needed, ("join", lambda: join(module))]
    if patches_are_newer(module.params["patches"]):
        needed.append(("render configuration", lambda: render_configuration(module)))
    if os.path.exists(BOOTSTRAP_CONF):
        needed.append(("remove bootstrap token", lambda: remove(BOOTSTRAP_CONF)))
    if modes := wrong_modes():
        needed.append(("modes of " + ", ".join(modes), lambda: None))
    return needed


def converge(module: AnsibleModule, found: Membership) -> list[str]:
    """Do what is needed, or in check mode only name it."""
    needed = steps(module, found)
    if not module.check_mode:
        for _, act in needed:
            act()
        for path, mode in wrong_modes().items():
            os.chmod(path, mode)
    return [name for name, _ in needed]


def current_units(module: AnsibleModule) -> list[str]:
    try:
        return units.converge(module.params["units"], module.check_mode).actions
    except Refused as error:
        module.fail_json(msg=str(error))


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "config": {"type": "dict", "required": True},
            "token": {"type": "str", "default": "", "no_log": True},
            "ca_pem": {"type": "str", "required": True},
            "endpoint": {"type": "str", "required": True},
            "kubeadm": {"type": "path", "default": "/usr/local/bin/kubeadm"},
            "patches": {"type": "path", "required": True},
            "replace": {"type": "bool", "default": False},
            "units": {"type": "list", "elements": "dict", "default": [], "options": units.OPTIONS},
        },
        supports_check_mode=True,
    )
    with contextlib.nullcontext() if module.check_mode else one_at_a_time():
        found = membership(module.params["ca_pem"], module.params["endpoint"], time.time())
        if found.state == "foreign" and not module.params["replace"]:
            module.fail_json(
                msg=f"this host is a node of another cluster: {found.reason}; drain it there and run 'kubeadm reset' "
                "on it, or set kubelet_replace to true for this host"
            )
        if found.state != "joined" and not module.params["token"] and not module.check_mode:
            module.fail_json(msg="this host is no node yet and no join token was given; run 'menagerie up'")
        actions = converge(module, found) + current_units(module)
    module.exit_json(changed=bool(actions), state=found.state, reason=found.reason, actions=actions)


if __name__ == "__main__":
    main()
