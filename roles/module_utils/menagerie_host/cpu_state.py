"""The state file of the kubelet's CPU manager, which records the CPUs of pods, and when to remove it.

A kubelet doesn't start if its policy or reserved CPUs differ from the file's. The file is safe to remove once no pod
with exclusive CPUs runs ("Control CPU Management Policies on the Node": drain, stop, remove, start).
"""

from __future__ import annotations

import glob
import http.client
import json
import os
import ssl
from typing import Any

from . import Refused
from .machine import numbers

PATH = "/var/lib/kubelet/cpu_manager_state"


def desired(patches: str, own: str) -> dict[str, Any]:
    """Return the configuration's CPU fields with the patches applied. own: text of the patch that is not placed yet."""
    fields: dict[str, Any] = json.loads(own) if own else {}
    for path in sorted(glob.glob(os.path.join(patches, "kubeletconfiguration0*.json"))):
        with open(path) as handle:
            fields |= json.load(handle)
    return fields


def conflict(configuration: dict[str, Any], online: list[int]) -> str:
    """Return why the file would keep a kubelet with this configuration from starting; "" if it would not."""
    try:
        with open(PATH) as handle:
            state = json.load(handle)
    except (FileNotFoundError, ValueError):
        return ""
    policy, known = configuration.get("cpuManagerPolicy", "none"), state.get("policyName", "")
    if policy != known:
        return f"its CPU manager's policy changes from {known} to {policy}"
    shared = set(numbers(state.get("defaultCpuSet", "")))
    if policy != "static" or not shared:
        return ""
    reserved = configuration.get("reservedSystemCPUs", "")
    if not set(numbers(reserved)) <= shared:
        return f"CPUs {reserved} become reserved for the system, and pods have some of them"
    given = [cpus for pod in (state.get("entries") or {}).values() for cpus in pod.values()]
    if shared.union(*map(numbers, given)) != set(online):
        return "the machine's CPUs have changed"
    return ""


def pods(endpoint: str, ca_pem: str, certificate: str, node: str) -> list[str]:
    """Return namespace/name of the node's pods that a drain would move, read with the kubelet's identity."""
    host, _, port = endpoint.rpartition(":")
    tls = ssl.create_default_context(cadata=ca_pem)
    tls.load_cert_chain(certificate)
    connection = http.client.HTTPSConnection(host, int(port), timeout=10, context=tls)
    try:
        connection.request("GET", f"/api/v1/pods?fieldSelector=spec.nodeName%3D{node}")
        answer = connection.getresponse()
        if answer.status != 200:
            raise Refused(f"https://{endpoint} doesn't say which pods {node} has: HTTP {answer.status} {answer.reason}")
        return sorted(_name(pod) for pod in json.load(answer)["items"] if _would_move(pod))
    except (OSError, http.client.HTTPException) as error:
        raise Refused(f"https://{endpoint} doesn't say which pods {node} has: {error!r}") from None
    finally:
        connection.close()


def _name(pod: dict[str, Any]) -> str:
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"


def _would_move(pod: dict[str, Any]) -> bool:
    owners = {owner["kind"] for owner in pod["metadata"].get("ownerReferences", ())}
    fixed = "DaemonSet" in owners or "kubernetes.io/config.mirror" in pod["metadata"].get("annotations", {})
    return not fixed and pod.get("status", {}).get("phase") not in ("Succeeded", "Failed")


def refuse_unless_drained(reason: str, node: str, remaining: list[str]) -> None:
    if remaining:
        shown = ", ".join(remaining[:3]) + (f" and {len(remaining) - 3} more" if len(remaining) > 3 else "")
        raise Refused(
            f"the kubelet of {node} must forget which pods have which CPUs, because {reason}; it still has pods: "
            f"{shown}. Run 'kubectl drain {node} --ignore-daemonsets --delete-emptydir-data', then this again, then "
            f"'kubectl uncordon {node}'. Until then the kubelet runs unchanged"
        )
