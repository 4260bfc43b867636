"""Every code that a check of a spec can give, and what stands behind it.

`reference` is the text of docs/errors.md. Codes are those of the kinds: CFG the file itself, NET
ranges, FLN flannel, ETC etcd, CLD clouds and pools, INV machines, ARP neighbour tables, VER versions, VPN joined sites.
"""

from __future__ import annotations

MEANING: dict[str, str] = {
    "CFG-001": "A key that the model doesn't have. The nearest one, or where it belongs, is named.",
    "CFG-002": "A key stands twice in one mapping. YAML parsers keep one of them in silence; the first counts in "
    "the checks.",
    "CFG-003": "A number, boolean, size or duration is written wrong: quoted where it must not be, "
    "unquoted where it must, or without a unit.",
    "CFG-004": "kubernetes.version isn't major.minor.patch in quotes. Without quotes YAML reads 1.30 as the "
    "number 1.3.",
    "CFG-005": "A name isn't an RFC 1123 label, which a node, a host and a Pulumi stack all need, or a domain isn't "
    "made of such labels.",
    "CFG-006": "The zones aren't those of one region, or one stands twice. A cluster over two regions fails as a whole "
    "with the link between them.",
    "CFG-010": "A file is missing, unreadable, or not UTF-8.",
    "CFG-011": "A file isn't YAML: a tab, an open bracket, an alias that holds itself.",
    "CFG-012": "A file is empty, or its top isn't a mapping of keys.",
    "CFG-013": "A key that must be there is missing, or has no value.",
    "CFG-014": "A value is of another kind than the key takes: a list for a mapping, text for a number.",
    "CFG-015": "A value is outside the limits of its key, or isn't one of the words that the key takes.",
    "CFG-016": "No cluster has that name.",
    "CFG-017": "A cluster's name differs from its folder's, or two clusters have the same name. "
    "Commands, state and the Pulumi stack go by it.",
    "CFG-018": "artefacts.mirror isn't a base URL, or artefacts.registry isn't host:port.",
    "CFG-019": "A setting that the model has and that nothing acts on yet. Only a warning: the cluster is built as if "
    "it weren't written.",
    "CFG-020": "A checksum in artefacts.sha256 isn't 64 hexadecimal digits, or is of a file that no host downloads.",
    "NET-001": "Two ranges share addresses: pods, services, nodes and racks, of one cluster or of two loaded together. "
    "Services of two clusters may: they are on no wire. So may a rack that is declared alike in both.",
    "NET-002": "A range isn't address/prefix, or has host bits set. Kubernetes 1.36 refuses those too.",
    "NET-003": "An address isn't IPv4, or has a leading zero, which some programs read as octal.",
    "NET-004": "network.pods can't be cut into a range of node_prefix for every node that the pools can grow to.",
    "NET-005": "node_prefix leaves a node fewer pod addresses than max_pods. The first, the last and the bridge's "
    "are lost.",
    "NET-006": "dns_ip isn't an address that a service can have beside the API's own, the first.",
    "NET-007": "flannel's network differs from network.pods.",
    "NET-008": "A range is loopback, link-local, multicast or reserved; Docker's default bridge only warns.",
    "NET-009": "flannel's MTU doesn't fit the narrowest link, or that link leaves less than 576 bytes for pods.",
    "NET-010": "network.nodes has no room for the API servers and etcd members, or can't be cut into the subnets that a "
    "cloud needs.",
    "NET-011": "network.services is wider than kube-apiserver takes (/12), or has no address for DNS.",
    "FLN-001": "host-gw with workers on more than one layer-2 network. A router between them knows no pods.",
    "FLN-002": "direct_routing where no two workers share a rack. flannel falls back to VXLAN without a word.",
    "FLN-003": "host-gw with workers in a cloud, whose fabric drops packets for addresses it doesn't know. "
    "direct_routing is for sites: packets of pods between workers in the region are always VXLAN.",
    "FLN-004": "VXLAN's UDP port belongs to another protocol of the same hosts.",
    "FLN-005": "An MTU for host-gw, which has no such setting: pods get the MTU of their node's interface.",
    "ETC-001": "An even number of members: one more vote to wait for, and no more losses survived.",
    "ETC-002": "More than seven members, or a single one in production.",
    "ETC-003": "main and events share a port, a data folder or hosts that they can't share, or a data folder isn't "
    "a plain one of its own: /usr would be given to etcd whole.",
    "ETC-005": "A quota at which clusters have stopped (2GiB) or that etcd doesn't support well (over 8GiB), "
    "or a disk too small for it.",
    "ETC-006": "One zone holds so many members that its loss stops the cluster.",
    "ETC-007": "election_timeout is under five heartbeats, or over 50 s. etcd refuses to start.",
    "ETC-008": "The disk is a network disk whose writes take milliseconds, isn't one that the cloud has, or is a local "
    "one where the machine has none, or one for two etcds. For events, or in development, a slow one only warns.",
    "ETC-009": "Backups are kept for less time than lies between two, or are taken without a break.",
    "CLD-001": "A region or a zone that the cloud doesn't have. Clouds' entries are those of cluster/catalogue/, with "
    "sources and dates; for what is newer, --allow-unknown turns this error into a warning.",
    "CLD-002": "A machine type that the cloud doesn't have, or that is another cloud's. --allow-unknown lets the first "
    "through.",
    "CLD-003": "A machine type that isn't offered in the region, or not in every zone where its hosts would stand. "
    "Azure numbers zones, and AWS names them by letter, anew for each customer: what can't be told from there only "
    "warns, or isn't said. With --allow-unknown it is a warning.",
    "CLD-004": "A pool's min is above its max, or a taint's effect is misspelt.",
    "CLD-005": "Pools in the region can grow to more vCPUs than control_plane.vcpu_quota says that the account may use.",
    "CLD-006": "A machine type whose processors can't run the programs that hosts download, which are built for amd64.",
    "CLD-007": "A pool in the region asks for what doesn't go together, or what its machines don't have: zones outside the "
    "control plane's, compact placement over several zones, spot machines out of a reservation, fast interfaces that the "
    "machine type lacks, or GPUs with an image that has no driver.",
    "INV-001": "A name, address, MAC or BMC is given to two hosts, or a host has a name of the control plane's hosts.",
    "INV-002": "A MAC isn't six bytes of one card: malformed, zero, multicast or broadcast.",
    "INV-005": "A host's address is outside its rack's range, or one that no host can have.",
    "INV-006": "A limit, a tag or the inventory itself matches nothing: a run would do nothing and call it success.",
    "INV-007": "A pool's site or a host's rack isn't declared.",
    "INV-008": "A pool is neither machines at a site (site, hosts) nor machines of the cloud (machine, min, max), "
    "or is both.",
    "INV-009": "A label or taint that Kubernetes refuses, or that a kubelet may not give its own node.",
    "INV-010": "Two sites of a lab have a rack of the same name. Elsewhere they may: a rack is known by its site and "
    "its name, but a lab makes one network for each name.",
    "ARP-001": "The neighbour table is too small for the largest layer-2 network.",
    "ARP-002": "Neighbour thresholds don't rise, or one is given without the next.",
    "VER-002": "A minor version of Kubernetes other than the one that this release writes flags for; in the lab, any "
    "version but the one that is built here.",
    "VPN-001": "An edge router is given twice, or under two ASNs, or joins a site without racks, to which no packet would "
    "go. Routers stand in the site that they join, so neither can be named without the other.",
    "VPN-002": "A site is joined by one edge router; its loss cuts every worker of the site off from its control plane.",
    "VPN-003": "A site has workers and no vpn beside a site that has one. Only a warning: a line of your own may lead to "
    "the region. The way back needs no setting: logs, exec and webhooks travel in tunnels that konnectivity agents open, "
    "and a joined site's racks are announced to the cloud.",
    "VPN-004": "A pre-shared key stands where the name of a secret must. What is found there is never repeated.",
    "VPN-005": "An ASN that the cloud, its gateway or IANA's registry keeps, or that two sites of a cluster share: BGP "
    "drops a route that has its own ASN in its path.",
    "VPN-006": "The range of addresses inside a site's tunnels has no room for them, isn't one that the cloud's gateway "
    "takes, or overlaps that of another site, or of another cluster at the same router.",
    "VPN-007": "An edge router's address isn't public; no gateway of a cloud could answer it. Those of RFC 5737, for "
    "documentation, pass.",
}


def reference() -> str:
    """docs/errors.md: every code under a heading of its own."""
    head = (
        "# Errors of a spec\n\n"
        "`menagerie check` gives all of them in one run, as `file:line:column: error[CODE] message`, then what stands\n"
        "behind it and the way out. Exit code 2; nothing has been touched. A `warning` doesn't stop anything.\n"
    )
    return head + "".join(f"\n## {code}\n\n{meaning}\n" for code, meaning in sorted(MEANING.items()))
