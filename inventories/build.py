"""Build Ansible's inventory of a cluster, with the variables of each worker. No I/O.

Group variables have what all workers, or those of a pool, share; a host's variables have only its own address.
Every role variable is declared in that role's ``meta/argument_specs.yml``.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from cluster import places
from cluster.artefacts import ArtefactSource
from cluster.outputs import ClusterOutputs
from cluster.pools import Host
from cluster.sites import Site
from cluster.spec import Cluster
from components.ceph import host as storage
from components.flows.hosts import of_sites
from components.workers import kubelet
from components.workers.group_vars import Groups, group_name
from components.workers.variables import of_all, of_host, of_pool, of_site
from network import links
from network.roce import host as rdma


@dataclass(frozen=True)
class Inventory:
    """An inventory in Ansible's form. It can contain join tokens of hosts: write it only to memory."""

    cluster: str
    data: Mapping[str, Any] = field(repr=False)
    """``{"all": {"vars": ..., "hosts": ..., "children": ...}}``"""
    known_hosts: str = ""
    """Text of an SSH known_hosts file with the keys known to the provider."""
    unknown_hosts: tuple[str, ...] = ()
    """Hosts whose SSH key isn't known to the provider."""

    @property
    def hosts(self) -> tuple[str, ...]:
        return tuple(self.data["all"]["hosts"])

    @property
    def groups(self) -> dict[str, tuple[str, ...]]:
        """Group -> its hosts."""
        children: Mapping[str, Any] = self.data["all"]["children"]
        return {name: tuple(group["hosts"]) for name, group in children.items()}

    def only(self, hosts: Collection[str]) -> Inventory:
        """Return the inventory with only some hosts, and without groups that would be empty."""
        selected, everything = frozenset(hosts), self.data["all"]
        children = {}
        for name, group in everything["children"].items():
            if own := {host: values for host, values in group["hosts"].items() if host in selected}:
                children[name] = {**group, "hosts": own}
        kept = {host: values for host, values in everything["hosts"].items() if host in selected}
        unknown = tuple(host for host in self.unknown_hosts if host in selected)
        data = {"all": {**everything, "hosts": kept, "children": children}}
        return Inventory(self.cluster, data, self.known_hosts, unknown)

    def joining(self, tokens: Mapping[str, str]) -> Inventory:
        """Return the inventory with bootstrap tokens, ``[a-z0-9]{6}.[a-z0-9]{16}``; each joining host only gets its own."""
        everything = self.data["all"]
        hosts = {host: values | _joining(tokens.get(host)) for host, values in everything["hosts"].items()}
        return replace(self, data={"all": {**everything, "hosts": hosts}})


def _joining(token: str | None) -> dict[str, str]:
    return {"kubelet_token": token} if token else {}


def layout(cluster: Cluster) -> Inventory:
    """Return hosts and groups without variables, which are known before the cluster is built."""
    children: dict[str, Any] = {name: {"hosts": {host: {} for host in hosts}} for name, hosts, _ in _groups(cluster)}
    machines: dict[str, Any] = {host.name: {} for _, host in cluster.host_list()}
    return Inventory(cluster.name, {"all": {"hosts": machines, "children": children}})


def build(
    cluster: Cluster,
    outputs: ClusterOutputs,
    variables: Groups | None = None,
    host_keys: Mapping[str, str] | None = None,
) -> Inventory:
    """Build the inventory of the cluster's workers at sites, without tokens.

    variables: from `components.workers.group_vars.operator_variables`. They take precedence over computed group variables.
    host_keys: host -> the SSH key that it reported when it was installed.
    Errors: raises ValueError if two groups would get the same name, and KeyError if a checksum is missing.
    """
    extra = variables or {}
    children: dict[str, Any] = {}
    for name, hosts, computed in _groups(cluster):
        if name in children:
            raise ValueError(f"two pools, racks or sites have the group name {name}; rename one of them")
        children[name] = {"hosts": {host: {} for host in hosts}, "vars": {**computed, **extra.get(name, {})}}
    shared = {**_shared(cluster, outputs), **extra.get("all", {})}
    workers, cards = cluster.host_list(), links.of_hosts(cluster, outputs)
    return Inventory(
        cluster.name,
        {
            "all": {
                "vars": shared,
                "hosts": {host.name: _own(cluster, pool, host) | cards.get(host.name, {}) for pool, host in workers},
                "children": children,
            }
        },
        known_hosts(cluster, {**(host_keys or {}), **outputs.ssh.known_hosts}),
        tuple(host.name for _, host in workers if host.name not in outputs.ssh.known_hosts),
    )


def _groups(cluster: Cluster) -> Iterable[tuple[str, list[str], dict[str, Any]]]:
    """Yield (group, hosts, variables) of every pool, site and rack with hosts."""
    spec = cluster.spec
    placed = sorted((spec.pools[pool].site or "", host.rack, host.name) for pool, host in cluster.host_list())
    for pool, machines in cluster.hosts.items():
        of_kubelets = {**of_pool(spec.control_plane.cloud, pool, spec.pools[pool]), **kubelet.of_pool(spec, pool)}
        computed = {**of_kubelets, **rdma.of_pool(spec, pool), **storage.of_pool(cluster, pool)}
        yield group_name("pool", pool), [host.name for host in machines], computed
    for site, entries in itertools.groupby(placed, key=lambda entry: entry[0]):
        yield (
            group_name("site", site),
            [name for _, _, name in entries],
            {**_site(spec.sites[site]), **of_site(cluster, site)},
        )
    for (site, rack), entries in itertools.groupby(placed, key=lambda entry: entry[:2]):
        yield group_name("rack", site, rack), [name for _, _, name in entries], {}


def _site(site: Site) -> dict[str, Any]:
    key = {"ansible_ssh_private_key_file": site.ssh.private_key} if site.ssh.private_key else {}
    become = {} if site.ssh.user == "root" else {"menagerie_become": True}
    return {"ansible_user": site.ssh.user, "ansible_port": site.ssh.port, **key, **become}


def _own(cluster: Cluster, pool: str, host: Host) -> dict[str, Any]:
    address = str(host.address)
    labels = dict(sorted(places.of_node(cluster, pool, host).items()))
    return {"ansible_host": address, **of_host(address), "kubelet_labels": labels}


def _shared(cluster: Cluster, outputs: ClusterOutputs) -> dict[str, Any]:
    artefacts = outputs.artefacts
    source = ArtefactSource(artefacts.mirror, artefacts.sha256, artefacts.registry)
    own = {"ansible_python_interpreter": "/usr/bin/python3", "base_names": _names(outputs)}
    return own | of_sites(cluster) | of_all(cluster, source, outputs.endpoint, outputs.ca_pem, outputs.serving_ca_pem)


def _names(outputs: ClusterOutputs) -> list[str]:
    """Return lines of /etc/hosts for an endpoint that is a name, as its private zone answers only in the region."""
    name = outputs.endpoint.rpartition(":")[0]
    return [f"{address} {name}" for address in outputs.balancers if address != name]


def known_hosts(cluster: Cluster, keys: Mapping[str, str]) -> str:
    """Return the text of an SSH known_hosts file. keys: host -> its public key.

    sshd(8): a port other than 22 is written ``[address]:port``.
    """
    lines = []
    for pool, host in cluster.host_list():
        if host.name in keys:
            port = cluster.spec.sites[cluster.spec.pools[pool].site or ""].ssh.port
            place = str(host.address) if port == 22 else f"[{host.address}]:{port}"
            lines.append(f"{place} {keys[host.name].strip()}\n")
    return "".join(lines)
