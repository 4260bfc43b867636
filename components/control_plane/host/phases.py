"""kubeadm-phases: creates this host's certificates and kubeconfigs before the API server starts.

The authorities' keys come from the secret store. Each boot creates all leaves, so an address may change; `renewal`
replaces old ones while the host runs. Each kubeconfig names this host's own API server, because not every cloud's load
balancer sends a host's packets back to it (Azure's does not).
"""

from __future__ import annotations

import base64
import ipaddress
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

KUBERNETES = Path("/etc/kubernetes")
RUN = Path("/run/menagerie")
SETTINGS = KUBERNETES / "menagerie/host.json"
TEMPLATE = KUBERNETES / "menagerie/kubeadm.yaml"
PKI = KUBERNETES / "pki"
KUBEADM = "/usr/local/bin/kubeadm"
LEAVES = {"apiserver": "ca", "apiserver-kubelet-client": "ca", "front-proxy-client": "front-proxy-ca"}
"""Certificate -> the authority that signs it."""
COMPONENTS = ("controller-manager", "scheduler")


def own_address(links: list[dict[str, Any]], nodes: str, balancers: list[str]) -> str:
    """Return this host's address in `nodes` from `ip -json address`. LookupError if there is none.

    `balancers` are skipped: Google Cloud's agent gives the load balancer's address to its backends.
    """
    network = ipaddress.ip_network(nodes)
    addresses = [str(entry["local"]) for link in links for entry in link.get("addr_info", []) if entry.get("local")]
    inside = [address for address in addresses if address not in balancers and ipaddress.ip_address(address) in network]
    if not inside:
        raise LookupError(f"this host has no address in {nodes}, only {', '.join(addresses) or 'none'}")
    return inside[0]


def read_own_address(settings: dict[str, Any], tries: int = 60) -> str:
    """Return this host's current `own_address`. Try up to `tries` times, one second apart."""
    for left in reversed(range(tries)):
        output = subprocess.run(
            ["ip", "-json", "-4", "address", "show", "up"], stdout=subprocess.PIPE, check=True
        ).stdout  # fmt: skip
        try:
            return own_address(json.loads(output or b"[]"), settings["nodes"], settings["balancers"])
        except LookupError:
            if not left:
                raise
        time.sleep(1)
    raise AssertionError("unreachable")


def advertised(address: str, balancers: list[str]) -> str:
    """Return the load balancer's address that is nearest to this host's: on AWS the one in its zone's subnet."""
    own = int(ipaddress.IPv4Address(address))
    return min(balancers, key=lambda text: own ^ int(ipaddress.IPv4Address(text)))


def write(path: Path, text: str, mode: int = 0o600) -> None:
    new = path.with_name(path.name + ".new")
    new.unlink(missing_ok=True)
    with os.fdopen(os.open(str(new), os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "w") as out:
        out.write(text)
    new.chmod(mode)
    new.replace(path)


def kubeadm(*words: str) -> str:
    """Return kubeadm's standard output. RuntimeError with its standard error if it fails."""
    done = subprocess.run([KUBEADM, *words], check=False, capture_output=True)
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip()
        raise RuntimeError(f"kubeadm {' '.join(words)} failed with {done.returncode}: {said}")
    return done.stdout.decode()


def render_config(settings: dict[str, Any], address: str) -> None:
    """Write kubeadm.yaml, which is uploaded, and local.yaml, whose control-plane endpoint is this host."""
    text = TEMPLATE.read_text().replace(settings["own_address_placeholder"], address)
    write(RUN / "kubeadm.yaml", text)
    there, here = (f"controlPlaneEndpoint: {host}:" for host in (settings["endpoint"], address))
    write(RUN / "local.yaml", text.replace(there, here))


def kubeconfigs(settings: dict[str, Any]) -> list[str]:
    """Return names of kubeconfigs of this host's programs. Each is a file <name>.conf."""
    return [*COMPONENTS, *settings["users"]]


def make(settings: dict[str, Any], names: list[str]) -> None:
    """Create leaves and kubeconfigs. Each replaces the former one atomically."""
    with tempfile.TemporaryDirectory(dir=str(RUN)) as folder:
        scratch = Path(folder)
        leaves = [name for name in names if name in LEAVES]
        if leaves:
            make_leaves(leaves, scratch)
        for name in kubeconfigs(settings):
            if name in names:
                write(KUBERNETES / f"{name}.conf", kubeconfig(settings, name, scratch))


def make_leaves(names: list[str], scratch: Path) -> None:
    """Create leaves. kubeadm finds the authorities, uses the first certificate of a file, and makes what is missing."""
    for source in ("ca", "front-proxy-ca", "sa"):
        for path in PKI.glob(f"{source}.*"):
            (scratch / path.name).symlink_to(path)
    config = scratch / "kubeadm.yaml"
    text = (RUN / "kubeadm.yaml").read_text()
    write(config, text.replace(f"certificatesDir: {PKI}\n", f"certificatesDir: {scratch}\n"))
    kubeadm("init", "phase", "certs", "all", "--config", str(config))
    made = {f"{name}.{end}": (scratch / f"{name}.{end}").read_text() for name in names for end in ("crt", "key")}
    for name, text in made.items():
        write(PKI / name, text, 0o644 if name.endswith(".crt") else 0o600)


def kubeconfig(settings: dict[str, Any], name: str, scratch: Path) -> str:
    """Return the text of a kubeconfig with a new client certificate."""
    config = str(RUN / "local.yaml")
    if name in COMPONENTS:
        kubeadm("init", "phase", "kubeconfig", name, "--config", config, "--kubeconfig-dir", str(scratch))
        return trusting_all((scratch / f"{name}.conf").read_text())
    return trusting_all(kubeadm("kubeconfig", "user", "--client-name", settings["users"][name], "--config", config))


def trusting_all(text: str) -> str:
    """Return a kubeconfig with all authorities. kubeadm's has only the first."""
    trusted = base64.b64encode((PKI / "ca.crt").read_bytes()).decode()
    return re.sub(r"(certificate-authority-data: *)\S+", lambda match: match[1] + trusted, text)


def main() -> None:
    settings = json.loads(SETTINGS.read_text())
    address = read_own_address(settings)
    print(f"this host is {address}", flush=True)
    RUN.mkdir(parents=True, exist_ok=True)
    render_config(settings, address)
    target = settings["advertised"]
    write(Path(target["path"]), f"{target['variable']}={advertised(address, settings['balancers'])}\n")
    make(settings, [*LEAVES, *kubeconfigs(settings)])


if __name__ == "__main__":
    try:
        main()
    except (RuntimeError, LookupError, OSError, subprocess.SubprocessError) as failure:
        sys.exit(str(failure))
