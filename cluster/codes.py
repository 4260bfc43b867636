"""Every code that a check of a spec can give, and what stands behind it.

`reference` is the text of docs/reference/errors.md. Codes are those of the kinds: CFG the file itself, NET
ranges, FLN flannel, ETC etcd, AUD audit logs, CLD clouds and pools, INV machines, LNK their links, ARP neighbour tables, ROC RDMA over Ethernet, PRV machines installed from nothing, VER versions, SEC secrets and
certificates, PUB the public endpoint, RPR repairs of nodes, ASC the autoscaler, SCH the scheduler, STO volumes of pods, TEN people
and teams, VPN joined sites, CPH storage of sites (Ceph).
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
    "CFG-006": "The zones aren't those of one region, or one stands twice, or a pool asks for a region or cloud of its "
    "own. A cluster over two regions fails as a whole with the link between them.",
    "CFG-010": "A file is missing, unreadable, larger than 32 MiB, no ordinary file, or not UTF-8.",
    "CFG-011": "A file isn't YAML: a tab, an open bracket, an alias that holds itself. Or it is more than is read: 64 levels, "
    "350,000 values, 10,000 in one list, 50,000 that aliases stand for.",
    "CFG-012": "A file is empty, its top isn't a mapping of keys, or most of its keys are those of another kind of file. "
    "Nothing of it is repeated, for it may be a key.",
    "CFG-013": "A key that must be there is missing, or has no value.",
    "CFG-014": "A value is of another kind than the key takes: a list for a mapping, text for a number.",
    "CFG-015": "A value is outside the limits of its key, or isn't one of the words that the key takes.",
    "CFG-016": "No cluster has that name.",
    "CFG-017": "A cluster's name differs from its folder's, or two clusters have the same name. "
    "Commands, state and the Pulumi stack go by it. Or two clusters of Google Cloud would have things of one name in a "
    "project, for there hyphens join names that have hyphens.",
    "CFG-018": "artefacts.mirror isn't a base URL, or artefacts.registry isn't host:port.",
    "CFG-019": "A setting that the model has and that nothing acts on yet. Only a warning: the cluster is built as if "
    "it weren't written.",
    "CFG-030": "A free word (a user, a path, a machine type, the port of a switch) has characters that no such thing "
    "has and that Ansible's templates, a shell or a command line would read as more than a word.",
    "CFG-020": "A checksum in artefacts.sha256 isn't 64 hexadecimal digits, is of a file or an image that no host downloads, or "
    "differs from the one that upstream publishes. Of a build of your own it stands in artefacts.own_builds, and is only warned of.",
    "NET-001": "Two ranges share addresses: pods, services, nodes and racks, of one cluster or of two loaded together. "
    "Services of two clusters may: they are on no wire. So may a rack that is declared alike in both.",
    "NET-002": "A range isn't address/prefix, or has host bits set. Kubernetes 1.36 refuses those too.",
    "NET-003": "An address isn't IPv4, or has a leading zero, which some programs read as octal.",
    "NET-004": "network.pods can't be cut into a range of node_prefix for every node that the pools can grow to.",
    "NET-005": "node_prefix leaves a node fewer pod addresses than max_pods. The first, the last and the bridge's "
    "are lost.",
    "NET-006": "dns_ip isn't an address that a service can have beside the API's own, the first.",
    "NET-007": "flannel's network differs from network.pods.",
    "NET-008": "A range is loopback, link-local, multicast or reserved, also by the cloud; Docker's default bridge only "
    "warns.",
    "NET-009": "flannel's MTU doesn't fit the narrowest link, or that link leaves less than 576 bytes for pods, or the "
    "cloud's network carries no packets that long.",
    "NET-010": "network.nodes has no room for the API servers and etcd members, or can't be cut into the subnets that a "
    "cloud needs.",
    "NET-011": "network.services is wider than kube-apiserver takes (/12), or has no address for DNS.",
    "NET-012": "A range of pods, services or nodes is a public one. Whose it is says so: network.allow_public_ranges.",
    "NET-013": "network.node_ports.outside opens the ports of Services on workers to everybody, or to a range that no one owner has, "
    "without a word that says so; or it names the cluster's own ranges, for which network.node_ports.cluster is the key.",
    "FLN-001": "host-gw with workers on more than one layer-2 network. A router between them knows no pods.",
    "FLN-002": "direct_routing where no two workers share a rack. flannel falls back to VXLAN without a word.",
    "FLN-003": "host-gw with workers in a cloud, whose fabric drops packets for addresses it doesn't know. "
    "direct_routing is for sites: packets of pods between workers in the region are always VXLAN.",
    "FLN-004": "VXLAN's UDP port belongs to another protocol of the same hosts.",
    "FLN-005": "An MTU for host-gw, which has no such setting: pods get the MTU of their node's interface.",
    "AUD-001": "Audit logs are kept for under a day, or for longer than a lock of a bucket holds.",
    "ETC-001": "An even number of members: one more vote to wait for, and no more losses survived.",
    "ETC-002": "More than seven members, or a single one in production.",
    "ETC-003": "main and events share a port, a data folder or hosts that they can't share, or a data folder isn't "
    "a plain one of its own: /usr would be given to etcd whole.",
    "ETC-004": "etcd_servers_overrides, which other tools have: which resource goes to which etcd follows from the model. "
    "The form is group/resource#servers, with ';' between servers; /registry/events is none.",
    "ETC-005": "A quota at which clusters have stopped (2GiB) or that etcd doesn't support well (over 8GiB), "
    "or a disk too small for it.",
    "ETC-006": "One zone holds so many members that its loss stops the cluster.",
    "ETC-007": "election_timeout is under five heartbeats, or over 50 s. etcd refuses to start.",
    "ETC-008": "The disk is a network disk whose writes take milliseconds, isn't one that the cloud has, or is a local "
    "one where the machine has none, or one for two etcds. For events, or in development, a slow one only warns.",
    "ETC-009": "Backups are kept for less time than lies between two or between two drills, are taken without a break, "
    "are tried more often than made, or are kept for longer than the cloud's bucket guards them.",
    "ETC-010": "etcd.main is on local disks and has no backup: all of its machines lost, all of the cluster is. In development "
    "it only warns.",
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
    "machine type lacks, or GPUs with an image that has no driver (in development only a warning), or a driver where "
    "there is no setting for it.",
    "CLD-008": "A pool or an image on Azure is what Azure doesn't have: more than 100 machines of one InfiniBand network, "
    "reserved capacity that isn't named by its group's id or goes with rdma or a placement, more labels and taints than a "
    "scale set has tags, or an image that isn't named in Azure's ways.",
    "CLD-009": "Machines on Google Cloud are asked for what their series doesn't have: a kind of disk for an etcd that "
    "can't be attached to it, or rdma without Tier_1 networking. Or a reservation isn't named in one of the API's ways.",
    "CLD-010": "A machine image isn't named as its cloud names images.",
    "INV-001": "A name, address, MAC or BMC is given to two hosts, or a host has a name of the control plane's hosts or of the "
    "API. Or two pools name one hosts file.",
    "INV-002": "A MAC isn't six bytes of one card: malformed, zero, multicast or broadcast.",
    "INV-003": "A machine isn't the one that the hosts file says: its BMC knows other MACs. Cables or addresses of BMCs are "
    "swapped, or a card was. Said by the machine's BMC (`menagerie status CLUSTER machines`), before anything is installed, and of "
    "cards of `links` by the machine itself (role links, `menagerie-links`).",
    "INV-004": "A machine doesn't have the address that the hosts file gives it, so it is another one, or isn't set up. Said by "
    "the machine itself.",
    "INV-005": "A host's address is outside its rack's range, or one that no host can have.",
    "INV-006": "A limit, a tag or the inventory itself matches nothing: a run would do nothing and call it success.",
    "INV-007": "A pool's site or a host's rack isn't declared.",
    "INV-008": "A pool is neither machines at a site (site, hosts) nor machines of the cloud (machine, min, max), "
    "or is both.",
    "INV-009": "A label or taint that Kubernetes refuses, or that a kubelet may not give its own node.",
    "INV-010": "Two sites of a lab have a rack of the same name. Elsewhere they may: a rack is known by its site and "
    "its name, but a lab makes one network for each name.",
    "INV-011": "A pool's machines are of a kind that cluster/hardware/machines.yaml doesn't have, or a pool in the region "
    "says what only machines at a site have. Hosts compare themselves with their kind before they take work.",
    "INV-012": "A host has the name of a pool, a site or a group of Ansible's. A run limited to that name could mean "
    "either.",
    "KRN-001": "A kernel parameter isn't one word that a boot loader's file can hold, is the boot loader's own (root=, init=), or "
    "has a key of its own (iommu=, hugepages=).",
    "KRN-002": "Kernel settings, or how many machines may be rebooted at a time, of a pool in the region. Those machines are "
    "booted from an image, and replaced.",
    "KRN-003": "Kernel settings that can't be: a parameter twice, one that no kubelet lives with, or huge pages that leave a "
    "machine of the kind no memory.",
    "KRN-004": "Kernel settings that cost speed or safety where nobody expects it: an IOMMU that translates between GPUs, ACS "
    "left on beside an IOMMU, mitigations off. Only a warning; docs/how-to/reboot.md has the sources.",
    "ARP-001": "The neighbour table is too small for the largest layer-2 network.",
    "ARP-002": "Neighbour thresholds don't rise, or one is given without the next.",
    "ARP-003": "Only a warning: gc_thresh3 is above 100,000, the most that any cluster is known to run with.",
    "LNK-001": "A link that can't be found or named: neither a PCI address nor a MAC says which port it is, two are one port, "
    "or its name is one that the kernel gives.",
    "LNK-002": "Two cables at one port of a switch, or a switch without its port.",
    "LNK-003": "A link that is a rail of the RDMA fabric has an MTU that the fabric can't use.",
    "LNK-004": "Links for a pool that isn't the site's, or a cable at a link that its pool doesn't have.",
    "LNK-005": "A cable leads to another switch or port than the hosts file says, or to none. Said by the machine itself, by "
    "what it hears from the switch (LLDP).",
    "LNK-006": "Packets as long as the spec says don't cross whole: to a machine of the same rack, to the router, to another rack, "
    "or to the API. Said by the machine itself.",
    "LNK-007": "A card doesn't take a setting: a ring beyond its largest, a feature that is fixed, an MTU. Said by the machine "
    "itself.",
    "ROC-001": "A machine's port has no RDMA that carries RoCE v2, or isn't a port: a bond, a virtual function, a card of "
    "another maker. Said by the machine itself, when its ports are set.",
    "ROC-002": "A link MTU under which Linux takes a smaller RoCE MTU than the fabric's, in silence: in the spec, at a "
    "machine's port, or at a switch (`menagerie roce plan --facts`).",
    "ROC-003": "Hosts and switches, or RDMA and its congestion notifications, don't agree on marks and priorities: what is "
    "lossless at one end is dropped, or pauses other traffic, at the other.",
    "ROC-004": "RoCE for machines that aren't the site's own: workers in the region, another site's, a lab's.",
    "ROC-005": "A rail that is no port, names one in two ways, or is another rail's port.",
    "CPH-001": "Ceph's monitors are an even number, more than there are storage hosts, on so few racks that the loss of one "
    "takes most of them, or in production a single one.",
    "CPH-002": "More replicas than storage hosts, or than racks with storage hosts where a rack is the failure domain, or in "
    "production a single one. Two only warn.",
    "CPH-003": "A pool of storage hosts that isn't one of the site's own with machines, a storage host that has its rack's "
    "name, or two sites with Ceph: Rook's release gives rights for one.",
    "CPH-004": "Ceph's public network is outside the site's racks, or leaves out a storage host; or its cluster network "
    "overlaps ranges that others have.",
    "CPH-005": "A rule for disks that means every disk, none, or those of another rule, or that isn't a name in "
    "/dev/disk/by-id.",
    "CPH-006": "Quotas of teams that together don't fit on the disks, a team without a quota, or on disks that aren't "
    "declared.",
    "CPH-007": "A disk of a storage host holds something, is used by something, or isn't there. Rook takes only empty devices. "
    "Said by the host itself, in role storage_host and in `menagerie-disks`.",
    "PRV-001": "An address that installers fetch from isn't plain http:// or https://, or has a user or password in it.",
    "PRV-002": "A machine of a site that is provisioned has no MAC, by which it is known when it boots, or no BMC where "
    "provisioning.bmc says that there are BMCs.",
    "PRV-003": "The rule for the system's disk means every disk, none, or one that Ceph is given, or isn't a name in "
    "/dev/disk/by-id.",
    "PRV-004": "A password of BMCs stands where the name of a secret must. What is found there is never repeated.",
    "PRV-005": "What must be the line of a public SSH key is something else, perhaps a private one. It is never repeated.",
    "PRV-006": "BMCs without a way to verify their certificates (ca, or pins), or with two; or media that no BMC attaches.",
    "PRV-007": "The router's address isn't in a rack's range, or is a machine's.",
    "PRV-008": "provisioning for a lab, whose machines boot nothing.",
    "PRV-009": "provisioning.first_stage without https: what machines fetch could come from whoever answers on their network.",
    "REG-001": "A registry or its mirror isn't host:port, as an image's name begins.",
    "REG-002": "Mirrors that don't go together: one twice for a registry, one of itself, or an authority for mirrors that are "
    "spoken to without TLS. Or, only a warning, mirrors without TLS: images of teams that are named by a tag can be changed on "
    "the way; Menagerie's own are pulled by digest.",
    "REG-003": "The file of the mirrors' authority isn't there, holds no certificate, or holds a private key.",
    "RPR-001": "A condition that makes a node a broken one stands twice, means that the node is well, or asks for what its action "
    "can't do.",
    "RPR-002": "A brake of repairs that never brakes (all nodes of a pool, or of the cluster), or, only a warning, one that comes "
    "to no node at all, so nothing of a pool is ever repaired. docs/how-to/repair.md has the sources of the defaults.",
    "RPR-003": "Times of repairs that undo each other: a repair that is forgotten before its node could be found broken again is "
    "repeated for ever, and a window below a node's startup counts nothing.",
    "RPR-004": "Machines are to be installed anew, and no site has BMCs through which they could be. Or, only a warning, a site has no "
    "first_stage: repair refuses to install its machines, for whoever is on their network could answer as the server.",
    "SCH-001": "A pool is to hold more idle workers warm than it can have at all.",
    "SCH-002": "Gangs are asked for of a release of Kubernetes that can't place pods all together or not at all. docs/how-to/gangs.md has "
    "the releases.",
    "SEC-001": "A key, a user or a password stands in clear where a path or an address must, and is never repeated. Or a key "
    "that other tools have and that would weaken TLS, authorities or encryption at rest, which have no setting.",
    "SEC-002": "Names for the API's certificate. They follow from the spec, so that none is missing: the name and "
    "addresses of the API, the first address of services, and control_plane.public.name.",
    "VER-001": "A version for kubelets, which other tools have. A node runs that of its API servers: a kubelet that is newer "
    "than they are, or more than three minors older, isn't supported (Version Skew Policy).",
    "VER-002": "A minor version of Kubernetes other than those that this release has tried its flags with; in the lab, any "
    "version but the ones that are built here. From one supported minor to the next goes `menagerie upgrade`.",
    "VER-003": "A version for etcd, which other tools have. The one of this release is tested with it; older ones have known "
    "ways around etcd's authorization, and data passes each minor on its way up.",
    "VER-004": "Flags or feature gates, which other tools have. Those of this release are written for its versions; a program "
    "doesn't start with one that it doesn't know.",
    "PUB-001": "The public endpoint has a name that no resolver on the internet finds, or that another cluster has, or "
    "lets in ranges that no packet from the internet carries.",
    "PUB-002": "Nobody could reach the cluster: firewalls let in whom control_plane.operators, control_plane.public and joined "
    "sites name, and there is none.",
    "PUB-003": "control_plane.operators, or that of public, lets in everybody, or more than any one owner has. "
    "allow_any_operator beside it accepts that.",
    "ASC-001": "autoscaler names a pool that isn't there, that stands at a site, or that can neither grow nor shrink.",
    "ASC-002": "autoscaler has no pool to grow: none in the region has a max above its min.",
    "ASC-003": "Times of autoscaler contradict each other: a first backoff above the longest, spot machines that are waited for "
    "longer than others, or a host that would be idle for long enough before anybody looks again.",
    "ASC-004": "autoscaler.removed_step is above repair.max_removed, so every such step would be refused.",
    "ASC-005": "A price of autoscaler isn't above nothing, or how often machines are taken away is no such number, or is said of a "
    "pool that isn't spot.",
    "STO-001": "storage.controllers names no pool in the region that has machines. One with GPUs only warns: controllers "
    "of volumes are a few small processes.",
    "STO-002": "storage.block_disk isn't a kind of network disk that the cloud has; with --allow-unknown a warning. Or, "
    "only a warning, machines of a pool can't have disks of that kind.",
    "STO-003": "storage asks for volumes where no driver can run: in a lab, or without workers in the region.",
    "TEN-001": "tenancy.directory names no directory, or two; or the file of its authorities can't be read.",
    "TEN-002": "The way to the directory isn't encrypted: who can change an answer can make himself a member of any team. "
    "Or TLS would begin twice, or what must be the URL of a server is none.",
    "TEN-003": "A password stands where the name of a secret must (it is never repeated), or bind_dn and password don't "
    "stand together: servers let a name without a password in as nobody.",
    "TEN-004": "A prefix can't begin a namespace's name, or people's and teams' are the same (only a warning).",
    "TEN-005": "A search filter, an attribute or a distinguished name isn't one.",
    "TEN-006": "A quota or limit isn't a quantity of Kubernetes, or has no such resource, or what a container gets is above "
    "what it may have.",
    "TEN-007": "tenancy.refuse_loss would believe that nearly all have left at once.",
    "TEN-008": "pod_security is privileged. Only a warning.",
    "TEN-009": "A team's member or owner is no person of the file.",
    "TEN-010": "A person's or team's name makes no name of a namespace, or one that Kubernetes or Menagerie keeps for "
    "itself, or no name of a user: only letters, digits, '.', '_', '@', '+' and '-' are, a letter or digit first.",
    "TEN-011": "Two people or teams would have one namespace.",
    "TEN-012": "An allocation, or tenancy.controllers, is of a pool that the cluster does not have or that never has a machine, or a team "
    "has two allocations of one pool.",
    "TEN-013": "The allocations of a pool are more hosts than it has.",
    "TEN-014": "A pool with allocations has a label or taint openai.com/team of its own, which would be taken from its hosts.",
    "TEN-015": "tenancy.borrowing is not in whole seconds, or gives a checkpoint more time than pods may ask for.",
    "TEN-016": "What a namespace may have of objects, or all namespaces of the file with people together, is more than etcd.main "
    "holds, were each as large as etcd takes. Only a warning; tenancy.overcommit says by how much it may be.",
    "VPN-001": "An edge router is given twice, or under two ASNs, or joins a site without racks, to which no packet would "
    "go. Routers stand in the site that they join, so neither can be named without the other.",
    "VPN-002": "A site is joined by one edge router; its loss cuts every worker of the site off from its control plane.",
    "VPN-003": "A site has workers and no vpn beside a site that has one. Only a warning: a line of your own may lead to "
    "the region. The way back needs no setting, and can't be turned off: logs, exec and webhooks travel in tunnels that "
    "konnectivity agents open, and a joined site's racks are announced to the cloud.",
    "VPN-004": "A pre-shared key stands where the name of a secret must, or where no key belongs. What is found there is "
    "never repeated.",
    "VPN-005": "An ASN that the cloud, its gateway or IANA's registry keeps, or that two sites of a cluster share: BGP "
    "drops a route that has its own ASN in its path.",
    "VPN-006": "The range of addresses inside a site's tunnels has no room for them, isn't one that the cloud's gateway "
    "takes, or overlaps that of another site, or of another cluster at the same router.",
    "VPN-007": "An edge router's address isn't public; no gateway of a cloud could answer it. Those of RFC 5737, for "
    "documentation, pass.",
    "VPN-008": "The machine that is an edge router is a worker, or another router too, or another one in the spec of another "
    "cluster with the same router.",
    "VPN-009": "An edge router has neither a pre-shared key nor a certificate, or both, or a certificate where none can be "
    "asked for: Google Cloud's gateway takes none, and for Azure's this release can't ask.",
    "VPN-010": "What is said of an edge router's certificate can't be: the ARN is of another service or region, one file is "
    "two routers' or the authority's too, or the ends of the gateway lack a name each.",
}


def reference() -> str:
    """docs/reference/errors.md: every code under a heading of its own."""
    head = (
        "# Errors of a spec\n\n"
        "`menagerie check` gives all of them in one run, as `file:line:column: error[CODE] message`, then what stands\n"
        "behind it and the way out. Exit code 2; nothing has been touched. A `warning` doesn't stop anything.\n"
    )
    return head + "".join(f"\n## {code}\n\n{meaning}\n" for code, meaning in sorted(MEANING.items()))
