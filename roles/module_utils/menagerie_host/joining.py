"""Join a host to its cluster with kubeadm, once; a node is left alone.

Standard library only: workers in the region run it without Ansible.
"""

from __future__ import annotations

import base64
import contextlib
import fcntl
import glob
import json
import os
import re
import ssl
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

from . import Refused, announcing, authorities, clock, cpu_state, machine

KUBELET_CONF = "/etc/kubernetes/kubelet.conf"
BOOTSTRAP_CONF = "/etc/kubernetes/bootstrap-kubelet.conf"
CA = "/etc/kubernetes/pki/ca.crt"
KUBELET_CONFIG = "/var/lib/kubelet/config.yaml"
CLIENT_CERTIFICATE = "/var/lib/kubelet/pki/kubelet-client-current.pem"
BOOTSTRAP_KEY = "/var/lib/kubelet/pki/kubelet-client.key.tmp"
SERVING_CERTIFICATE = "/var/lib/kubelet/pki/kubelet-server-current.pem"
RUN = "/run/menagerie"
# Seconds. The controller manager marks a silent node NotReady within 50 s (--node-monitor-grace-period); kubeadm
# refuses a host while its former Node is Ready.
NODE_GRACE = 90
# CIS 4.1.5 to 4.1.10; kubeadm writes the kubelet's configuration with 0644.
MODES = {KUBELET_CONF: 0o600, CA: 0o644, KUBELET_CONFIG: 0o600, "/var/lib/kubelet/instance-config.yaml": 0o600}


class Membership(NamedTuple):
    """state: absent, joined, foreign or expired. reason: why, for the operator."""

    state: str
    reason: str = ""


def seconds_left(certificate: str, now: float) -> float:
    """Return seconds until a PEM file's first certificate expires. OSError if it can't be read."""
    # The standard library reads a certificate's dates only through this function; ssl.SSLContext lists only CAs.
    decoded = ssl._ssl._test_decode_cert(certificate)  # type: ignore[attr-defined]
    return ssl.cert_time_to_seconds(decoded["notAfter"]) - now


def membership(ca_pem: str, endpoint: str, now: float) -> Membership:
    """Return the host's state, read from the kubelet's kubeconfig and certificate."""
    try:
        with open(KUBELET_CONF) as handle:
            text = handle.read()
    except FileNotFoundError:
        return Membership("absent")
    server = re.search(r"server: *https://(\S+)", text)
    own_ca = authorities.certificates(authorities.of_kubeconfig(text))
    # While a cluster's authority changes, a node may be a step behind, but shares one authority.
    if not set(own_ca) & set(authorities.certificates(ca_pem)):
        return Membership("foreign", f"its CA isn't this cluster's; it talks to {server[1] if server else 'no server'}")
    if server and server[1] != endpoint:
        return Membership("foreign", f"it talks to {server[1]}, this cluster's API is at {endpoint}")
    try:
        left = seconds_left(CLIENT_CERTIFICATE, now)
    except (OSError, ssl.SSLError):
        return Membership("expired", "it has no readable client certificate")
    return Membership("joined") if left > 0 else Membership("expired", "its client certificate has expired")


def patches_are_newer(folder: str) -> bool:
    """Return whether a patch was added, changed or removed after the kubelet's configuration was rendered."""
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
    """Return the reason in kubeadm's output: from its first error on, without the table of checks before."""
    lines = [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in output.splitlines() if line.strip()]
    first = next((i for i, line in enumerate(lines) if line.startswith(("error", "[ERROR"))), max(0, len(lines) - 15))
    return "\n".join(line for line in lines[first:] if "stack trace" not in line)


class Desired(NamedTuple):
    """The cluster to join. config: a JoinConfiguration without discovery. patches: folder of kubeadm's patches."""

    config: dict[str, Any]
    ca_pem: str
    serving_pem: str
    """Authorities of kubelets' serving certificates, the signing one first."""
    endpoint: str
    kubeadm: str
    patches: str
    token: Callable[[], str]
    """Returns a bootstrap token; a joining host calls it once per attempt."""
    machine: dict[str, Any]
    """Input of `machine.configuration` for the kubelet's share; empty to compute none."""
    asks_anew: bool = False
    """Whether each attempt uses a new key. A request is named after its key, and a kubelet waits for an existing
    request, even one made with an invalid token. In the region, a name may have only one key."""


def execute(command: list[str]) -> tuple[int, str]:
    """Return a command's exit code and output."""
    done = subprocess.run(command, check=False, stdin=subprocess.DEVNULL, capture_output=True)
    return done.returncode, (done.stdout + done.stderr).decode(errors="replace")


def run(command: list[str]) -> None:
    code, output = execute(command)
    if code:
        raise Refused(f"kubeadm {command[1]}: {why(output)}")


def join(desired: Desired) -> None:
    """Join. If this host's former Node is still Ready, retry until its lease expires."""
    deadline = time.monotonic() + NODE_GRACE
    while True:
        code, output = try_join(desired)
        if not code:
            return
        if 'status "Ready" already exists' not in output or time.monotonic() > deadline:
            raise Refused(f"kubeadm join: {why(output)}")
        time.sleep(5)


def try_join(desired: Desired) -> tuple[int, str]:
    """Join once. First remove the files of an interrupted join, because kubeadm refuses a host that has them."""
    token = desired.token()
    execute(["systemctl", "stop", "kubelet.service"])
    remove(*glob.glob(os.path.join(RUN, "join-*.yaml")))
    remove(*([BOOTSTRAP_KEY] if desired.asks_anew else []))
    remove(KUBELET_CONF, BOOTSTRAP_CONF, CA, *glob.glob("/var/lib/kubelet/pki/kubelet-client-*"))
    try:
        discovery = written("discovery", discovery_kubeconfig(desired.ca_pem, desired.endpoint, token))
        discovery_config = {"file": {"kubeConfigPath": discovery}, "tlsBootstrapToken": token}
        path = written("config", {**desired.config, "discovery": discovery_config})
        return execute([desired.kubeadm, "join", "--config", path])
    finally:
        remove(*glob.glob(os.path.join(RUN, "join-*.yaml")))


def discovery_kubeconfig(ca_pem: str, endpoint: str, token: str) -> dict[str, Any]:
    """Return what kubeadm needs to trust the API server. Without it, it asks anonymously, which the API refuses."""
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
    """Write a file in memory that only root can read. Return its path."""
    handle, path = tempfile.mkstemp(prefix=f"join-{name}-", suffix=".yaml", dir=RUN)
    with os.fdopen(handle, "w") as stream:
        json.dump(content, stream)
    return path


@contextlib.contextmanager
def one_at_a_time() -> Iterator[None]:
    """Wait for the kubeadm of a run that was killed: it may still work here, and its result counts."""
    os.makedirs(RUN, mode=0o700, exist_ok=True)
    with open(os.path.join(RUN, "join.lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def render_configuration(desired: Desired) -> None:
    phase = ["upgrade", "node", "phase", "kubelet-config", "--patches", desired.patches]
    run([desired.kubeadm, *phase, "--kubeconfig", KUBELET_CONF])


def differing_patch(desired: Desired) -> str:
    """Return the text of the machine's own patch if the placed one differs, otherwise ""."""
    text = machine.patch(desired.machine)
    path = os.path.join(desired.patches, machine.PATCH)
    if not text or not os.path.exists(path):
        return text
    with open(path) as handle:
        return "" if handle.read() == text else text


def place_patch(desired: Desired, text: str) -> None:
    os.makedirs(desired.patches, mode=0o755, exist_ok=True)
    handle, partial = tempfile.mkstemp(dir=desired.patches)
    with os.fdopen(handle, "w") as stream:
        stream.write(text)
    os.replace(partial, os.path.join(desired.patches, machine.PATCH))


def forget_cpus() -> None:
    execute(["systemctl", "stop", "kubelet.service"])
    remove(cpu_state.PATH)


def cpus(desired: Desired, membership: Membership) -> list[tuple[str, Callable[[], None]]]:
    """Return the steps for the CPU manager's file. The pods of a host that is no node do not count."""
    configuration = cpu_state.desired(desired.patches, machine.patch(desired.machine))
    reason = cpu_state.conflict(configuration, machine.online())
    if not reason:
        return []
    if membership.state == "joined":
        node = os.uname().nodename.lower()
        pods = cpu_state.pods(desired.endpoint, desired.ca_pem, CLIENT_CERTIFICATE, node)
        cpu_state.refuse_unless_drained(reason, node, pods)
    return [("forget which pods have which CPUs", forget_cpus)]


def own_files() -> authorities.Files:
    return authorities.Files(KUBELET_CONF, BOOTSTRAP_CONF, CA, CLIENT_CERTIFICATE, SERVING_CERTIFICATE)


def announce(endpoint: str, serving_pem: str, check: bool, joined: bool = False) -> list[str]:
    """Record on the Node which authorities its kubelet runs with. joined: the host has just joined."""
    return announcing.converge(endpoint, own_files(), serving_pem, check, announcing.PATIENCE_S if joined else 0)


def is_node(membership: Membership) -> bool:
    """Return whether this host is a node. During a renewal it is one without a certificate."""
    return membership.state == "joined" or (
        membership.state == "expired" and authorities.renewal_was_cut_off(own_files())
    )


def following(ca_pem: str, serving_pem: str) -> list[tuple[str, Callable[[], None]]]:
    """Return the steps by which a node follows its cluster's authorities."""
    needed: list[tuple[str, Callable[[], None]]] = []
    files = own_files()
    if not authorities.are_these(ca_pem, files):
        needed.append(("trust the cluster's authorities", lambda: authorities.trust(ca_pem, files)))
    if authorities.foreign_certificates(ca_pem, serving_pem, files) or authorities.renewal_was_cut_off(files):
        renew = partial(authorities.renew, ca_pem, serving_pem, files, execute)
        needed.append(("certificates of the authority that signs", renew))
    return needed


def steps(desired: Desired, membership: Membership) -> list[tuple[str, Callable[[], None]]]:
    """Return (name, action) of each step that the host needs, in order."""
    needed: list[tuple[str, Callable[[], None]]] = []
    if membership.state != "joined":
        clock.refuse_skew(desired.endpoint)
    forgetting = cpus(desired, membership)
    text = differing_patch(desired)
    if text:
        needed.append(("the kubelet's share of the machine", lambda: place_patch(desired, text)))
    if membership.state == "foreign":
        reset = [desired.kubeadm, "reset", "--force", "--cleanup-tmp-dir"]
        needed.append(("reset", lambda: run(reset)))
    if membership.state != "joined":
        return [*needed, *forgetting, ("join", lambda: join(desired))]
    needed += following(desired.ca_pem, desired.serving_pem)
    if text or patches_are_newer(desired.patches):
        needed.append(("render configuration", lambda: render_configuration(desired)))
    if os.path.exists(BOOTSTRAP_CONF) and not authorities.renewal_was_cut_off(own_files()):
        needed.append(("remove bootstrap token", lambda: remove(BOOTSTRAP_CONF)))
    if modes := wrong_modes():
        needed.append(("modes of " + ", ".join(modes), lambda: None))
    # Last: if the API doesn't answer the steps before, the kubelet runs on unchanged.
    return needed + forgetting


def converge(desired: Desired, membership: Membership, check: bool) -> list[str]:
    """Run the needed steps, or in a dry run only name them."""
    needed = steps(desired, membership)
    if not check:
        for _, act in needed:
            act()
        for path, mode in wrong_modes().items():
            os.chmod(path, mode)
    return [name for name, _ in needed]
