"""The full configuration of a worker in the region at boot. It is the same for all workers of a pool.

It comes from the roles, like that of a worker at a site, with these differences:

- The host's name and address are placeholders. `menagerie_host.in_region` fills them in on the host, and adds the host's
  place in the cloud to the kubelet's labels and flags (zone, region, machine type, provider id).
- Neighbour tables and flannel's backend are those of the region (`in_cloud`): always VXLAN.
- The token comes from the store, not from the operator, and is fetched again for each attempt to join.
- menagerie-boot writes the host's name to `/etc/hosts`. Files that must be absent already are on a new host.
- Pods can't reach the metadata service (`components.workers.metadata`); a site has none.
- menagerie-boot starts the units, in order and at every boot, so none is enabled. During a host's life only the cluster's
  authorities change; menagerie-refresh applies them, as role kubelet does at sites.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from cluster.artefacts import ArtefactSource, catalogue
from cluster.files import JOIN_TOKEN, Consumer, Download, HostConfig, HostFile, Refresh, SecretRef
from cluster.pools import POOL_LABEL
from cluster.programs import without_words
from cluster.spec import Cluster
from components.control_plane import paths
from components.control_plane.ports import API_PORT
from components.workers import metadata
from components.workers.group_vars import Groups, group_name
from components.workers.kubelet import of_pool as kubelet_of_pool
from components.workers.roles import FOLDER, Declaration, declarations
from components.workers.variables import Variables, of_all, of_host, of_pool
from network.addresses import AddressPlan

OWN_NAME, OWN_ADDRESS = "%H", "${OWN_ADDRESS}"
"""Placeholders that systemd fills in, the second from `ENVIRONMENT`."""
ENVIRONMENT = "/run/menagerie/worker.env"
SETTINGS = "/etc/menagerie/worker.json"
CA = "/etc/menagerie/kubernetes-ca.crt"
SERVING_CA = "/etc/menagerie/kubelet-serving-ca.crt"
"""The authority that signs the kubelet's serving certificate. Nothing on a worker trusts it."""
NODE_CA = f"{paths.PKI}/ca.crt"
"""kubeadm writes it during the join, and `menagerie_host.authorities` as the last of its changes."""
LIBRARY = "/usr/local/lib/menagerie/menagerie_host"
PREPARE, JOIN = "worker@prepare.service", "worker@join.service"
_UNITS = "/etc/systemd/system"
_PROGRAMS = (
    "__init__", "announcing", "authorities", "clock", "cpu_state", "facts", "in_region", "joining", "kernel", "machine", "units",
)  # fmt: skip
_KERNEL = ("/etc/sysctl.d/", "/etc/modules-load.d/")


def host_config(
    cluster: Cluster, pool: str, plan: AddressPlan, source: ArtefactSource, given: Groups | None = None
) -> HostConfig:
    """Return the configuration of every worker of a pool in the region; nothing in it names a particular host.

    given: from `components.workers.group_vars.operator_variables`. Raises KeyError if `source` has no checksum for a program.
    """
    declared = declarations(in_region(cluster, pool, plan, source, given))
    artefacts = {source.url(artefact): artefact for artefact in catalogue(cluster.spec.kubernetes.version).values()}
    return HostConfig(
        files=(*_files(declared), *metadata.files(cluster), *_own_files(cluster, plan, declared)),
        secrets=(SecretRef("kubernetes-ca.crt", CA, 0o644), SecretRef("kubelet-serving-ca.crt", SERVING_CA, 0o644)),
        downloads=tuple(
            Download(
                artefacts[program["url"]],
                program.get("path", ""),
                tuple(program.get("members", {}).items()),
                int(program.get("mode", "0755"), 8),
            )
            for declaration in declared
            for program in declaration.arguments.get("programs", ())
        ),
        start=(PREPARE, metadata.UNIT, *_units(declared, "host_state"), JOIN, *_units(declared, "kubelet_join")),
        packages=tuple(sorted({"python3", *_commands(declared).values()})),
        refresh=_refresh(declared),
    )


def _refresh(declared: Iterable[Declaration]) -> Refresh:
    """Return the refresh: units that trust the cluster's authorities restart when those change. At sites, Ansible does that."""
    (join,) = (declaration.arguments for declaration in declared if declaration.module == "kubelet_join")
    units = tuple(Consumer(unit["unit"], (NODE_CA,)) for unit in join["units"])
    folder = str(Path(LIBRARY).parent)
    program = ("/usr/bin/env", f"PYTHONPATH={folder}", "/usr/bin/python3", "-sB", "-m", "menagerie_host.in_region")
    return Refresh(units, report=(), renew=(*program, "refresh"))


def in_region(
    cluster: Cluster, pool: str, plan: AddressPlan, source: ArtefactSource, given: Groups | None = None
) -> Variables:
    """Return the roles' variables for workers of a pool in the region. `given` has the same precedence as in Ansible."""
    operators = given or {}
    variables = {
        "inventory_hostname": OWN_NAME,
        **of_all(cluster, source, f"{plan.endpoint}:{API_PORT}", "", "", in_cloud=True),
        **operators.get("all", {}),
        **of_pool(cluster.spec.control_plane.cloud, pool, cluster.spec.pools[pool]),
        **kubelet_of_pool(cluster.spec, pool),
        **operators.get(group_name("pool", pool), {}),
        **of_host(OWN_ADDRESS),
    }
    return {**variables, "kubelet_labels": {**variables["kubelet_labels"], POOL_LABEL: pool}}


def _files(declared: Iterable[Declaration]) -> Iterable[HostFile]:
    for declaration in declared:
        for file in declaration.arguments.get("files", ()):
            if not file.get("block"):
                mode = int(file.get("mode", "0644"), 8)
                text = without_words(file["text"]) if file["path"].endswith(".py") else file["text"]
                yield HostFile(file["path"], text, mode, file.get("owner", "root:root"))


def _commands(declared: Iterable[Declaration]) -> dict[str, str]:
    """Return command -> Debian package."""
    packages: dict[str, str] = {}
    for declaration in declared:
        packages |= declaration.arguments.get("commands", {})
    return packages


def _units(declared: Iterable[Declaration], module: str) -> Iterable[str]:
    """Yield the units that a module starts. Units that it only restarts are started by another unit."""
    for declaration in declared:
        for unit in declaration.arguments.get("units", ()) if declaration.module == module else ():
            if unit.get("restarted", "always") == "always":
                yield unit["unit"]


def _own_files(cluster: Cluster, plan: AddressPlan, declared: tuple[Declaration, ...]) -> Iterable[HostFile]:
    """Yield the files that replace Ansible: its modules' programs, their settings, and the unit that runs them."""
    settings = json.dumps(_settings(cluster, plan, declared), indent=1, sort_keys=True) + "\n"
    yield HostFile(SETTINGS, settings)
    yield HostFile(f"{_UNITS}/flanneld.service.d/region.conf", f"[Service]\nEnvironmentFile={ENVIRONMENT}\n")
    unit = Path(__file__).resolve().parent / "files" / "worker@.service"
    yield HostFile(f"{_UNITS}/{unit.name}", unit.read_text())
    for name in _PROGRAMS:
        program = (FOLDER / "module_utils" / "menagerie_host" / f"{name}.py").read_text()
        yield HostFile(f"{LIBRARY}/{name}.py", without_words(program))


def _settings(cluster: Cluster, plan: AddressPlan, declared: tuple[Declaration, ...]) -> dict[str, Any]:
    (join,) = (declaration.arguments for declaration in declared if declaration.module == "kubelet_join")
    followers = [unit["unit"] for unit in join["units"] if unit.get("restarted") == "if_running"]
    return {
        "cloud": str(cluster.spec.control_plane.cloud),
        # An address, not a name: a host finds its own address on the route there without DNS.
        "towards": str(plan.balancers[0]),
        "environment": ENVIRONMENT,
        "placeholders": {"name": OWN_NAME, "address": OWN_ADDRESS},
        "kernel": list(_kernel(declared)),
        "join": {name: join[name] for name in ("config", "endpoint", "patches", "machine")}
        | {"ca": CA, "serving_ca": SERVING_CA, "token": JOIN_TOKEN},
        "followers": followers,
    }


def _kernel(declared: Iterable[Declaration]) -> Iterable[dict[str, Any]]:
    for declaration in declared:
        files = declaration.arguments.get("files", ())
        paths = [file["path"] for file in files if file["path"].startswith(_KERNEL)]
        swap_off = declaration.arguments.get("swap_off", False)
        if paths or swap_off:
            yield {"paths": paths, "swap_off": swap_off, "unsettable": declaration.arguments.get("unsettable", "fail")}
