"""The codes of `check`, with their meanings.

`reference` is the text of docs/reference/errors.md. Prefixes: CFG the file itself, NET ranges, FLN flannel, ETC etcd,
AUD audit logs, CLD clouds and pools, INV machines, KRN kernel settings, LNK links of machines, ARP neighbour tables,
ROC RDMA over Ethernet, PRV provisioning of machines, REG registries, VER versions, SEC secrets and certificates,
PUB the public endpoint, RPR repairs of nodes, ASC the autoscaler, SCH the scheduler, STO volumes of pods, TEN people
and teams, MON monitoring, VPN joined sites, CPH storage of sites (Ceph).
"""

from __future__ import annotations

MEANING: dict[str, str] = {
    "CFG-001": "The model has no such key. The message names the nearest key, or where the key belongs.",
    "CFG-002": "A mapping has the same key twice. YAML parsers silently keep one of them; the checks use the first.",
    "CFG-003": "A number, boolean, size or duration is written incorrectly: quoted where it must not be, unquoted where "
    "it must be, or without a unit.",
    "CFG-004": "kubernetes.version isn't major.minor.patch in quotes. Without quotes YAML reads 1.30 as the number 1.3.",
    "CFG-005": "A name isn't an RFC 1123 label, which nodes, hosts and Pulumi stacks all need, or a domain isn't made of "
    "such labels.",
    "CFG-006": "The zones aren't all in one region, a zone is listed twice, or a pool has its own region or cloud. A "
    "cluster in two regions fails as a whole when the link between them does.",
    "CFG-010": "A file is missing, unreadable, larger than 32 MiB, not a regular file, or not UTF-8.",
    "CFG-011": "A file isn't YAML: a tab, an open bracket, an alias that contains itself. Or it exceeds a limit: 64 "
    "levels, 350,000 values, 10,000 entries in one list, 50,000 values from aliases.",
    "CFG-012": "A file is empty, its top level isn't a mapping, or most of its keys belong to another kind of file. The "
    "message doesn't repeat any of the file's content, which may be a key.",
    "CFG-013": "A required key is missing or has no value.",
    "CFG-014": "A value has the wrong type for its key: a list instead of a mapping, text instead of a number.",
    "CFG-015": "A value is outside the limits of its key, or isn't one of the words that the key accepts.",
    "CFG-016": "There is no cluster with that name.",
    "CFG-017": "A cluster's name differs from its folder's, or two clusters have the same name. Commands, state and the "
    "Pulumi stack use it. Or two clusters of Google Cloud would have resources with the same name in one project: names "
    "are joined by hyphens, which they may contain themselves.",
    "CFG-018": "artefacts.mirror isn't a base URL, or artefacts.registry isn't host:port.",
    "CFG-019": "The model has this setting, but it has no effect yet. Only a warning: the cluster is built as if the "
    "setting weren't there.",
    "CFG-030": "A free-form word (a user, a path, a machine type, the port of a switch) has characters that are never "
    "part of one, and that Ansible's templates, a shell or a command line could interpret.",
    "CFG-020": "A checksum in artefacts.sha256 isn't 64 hexadecimal digits, is for a file or image that no host "
    "downloads, or differs from the one that upstream publishes. Checksums of your own builds belong in "
    "artefacts.own_builds, where they only cause a warning.",
    "CFG-021": "A checksum in artefacts.lock differs from the spec's, or from the one that upstream publishes, or a newer "
    "Menagerie wrote the file. `bundle` writes it, next to cluster.yaml.",
    "CFG-022": "A value that `init` wrote is still marked PLACEHOLDER. Only its owner knows the right one. A warning.",
    "NET-001": "Two ranges overlap: pods, services, nodes or racks, of one cluster or of two loaded together. Service "
    "ranges of two clusters may overlap, as they are on no wire. So may a rack that both declare with the same range.",
    "NET-002": "A range isn't address/prefix, or has host bits set. Kubernetes 1.36 refuses such ranges too.",
    "NET-003": "An address isn't IPv4, or has a leading zero, which some programs read as octal.",
    "NET-004": "network.pods doesn't have a range of size node_prefix for every node that the pools can grow to.",
    "NET-005": "node_prefix leaves a node fewer pod addresses than max_pods. The first, the last and the bridge's address "
    "aren't for pods.",
    "NET-006": "dns_ip isn't an address that a Service can have. The first one belongs to the API.",
    "NET-007": "flannel's network differs from network.pods.",
    "NET-008": "A range is loopback, link-local, multicast or otherwise reserved, possibly by the cloud. Docker's default "
    "bridge is only a warning.",
    "NET-009": "flannel's MTU is too large for the smallest link MTU, or that link leaves pods less than 576 bytes, or "
    "the cloud's network doesn't carry packets of that size.",
    "NET-010": "network.nodes has no room for the API servers and etcd members, or can't be cut into the subnets that a "
    "cloud needs.",
    "NET-011": "network.services is wider than kube-apiserver accepts (/12), or has no address for DNS.",
    "NET-012": "A range of pods, services or nodes is public. If you own it, set network.allow_public_ranges.",
    "NET-013": "network.node_ports.outside opens the ports of Services on workers to everybody, or to a range too large "
    "for a single owner, without allow_any_client. Or it contains the cluster's own ranges, which "
    "network.node_ports.cluster is for.",
    "FLN-001": "host-gw with workers on more than one layer-2 network. Routers between them don't know pod addresses.",
    "FLN-002": "direct_routing where no two workers share a rack. flannel would silently fall back to VXLAN.",
    "FLN-003": "host-gw with workers in a cloud, whose fabric drops packets for unknown addresses. direct_routing is for "
    "sites: packets of pods between workers in the region are always VXLAN.",
    "FLN-004": "Another protocol on the same hosts uses VXLAN's UDP port.",
    "FLN-005": "host-gw has no MTU setting: pods get the MTU of their node's interface.",
    "AUD-001": "Audit logs are kept for less than a day, or for longer than a bucket lock can hold.",
    "ETC-001": "An even number of members needs one more vote and survives no additional loss.",
    "ETC-002": "There are more than seven members, or only one in production.",
    "ETC-003": "main and events share a port, a data folder or hosts that they can't share, or a data folder isn't a "
    "separate one: etcd would own /usr as a whole.",
    "ETC-004": "etcd_servers_overrides is a setting of other tools. Here the model decides which resource is in which "
    "etcd. The form is group/resource#servers with ';' between servers, so /registry/events isn't valid there either.",
    "ETC-005": "A quota at which clusters have stopped (2GiB) or that etcd doesn't support well (over 8GiB), or a disk "
    "too small for it.",
    "ETC-006": "One zone has so many members that its loss stops the cluster.",
    "ETC-007": "election_timeout is less than five heartbeats, or more than 50 s. etcd refuses to start.",
    "ETC-008": "The disk is a network disk whose writes take milliseconds, a kind that the cloud doesn't have, a local "
    "disk on a machine type without one, or a single local disk for two etcds. For events, or in development, a slow "
    "disk is only a warning.",
    "ETC-009": "Backups are kept for less time than the interval between two backups or two drills, are taken without a "
    "pause, are tested more often than taken, or are kept for longer than the cloud's bucket can protect them.",
    "ETC-010": "etcd.main is on local disks and has no backup: losing all its machines means losing the cluster. In "
    "development this is only a warning.",
    "CLD-001": "The cloud has no such region or zone. cluster/catalogue/ lists the entries of clouds, with sources and "
    "dates; for newer ones, --allow-unknown turns this error into a warning.",
    "CLD-002": "The cloud has no such machine type, or it belongs to another cloud. --allow-unknown turns the former into "
    "a warning.",
    "CLD-003": "The machine type isn't offered in the region, or not in every zone where its hosts would run. Azure's "
    "zone numbers and AWS's zone letters differ for each customer: what depends on them is only a warning, or isn't "
    "checked. --allow-unknown turns the error into a warning.",
    "CLD-004": "A pool's min is above its max, or a taint's effect is misspelt.",
    "CLD-005": "Pools in the region can grow to more vCPUs than control_plane.vcpu_quota allows.",
    "CLD-006": "The machine type's processors can't run the programs that hosts download, which are built for amd64.",
    "CLD-007": "A pool in the region has settings that don't go together, or that its machines don't support: zones "
    "outside the control plane's, compact placement in several zones, spot machines from a reservation, fast interfaces "
    "that the machine type lacks, or GPUs with an image that has no driver (in development only a warning), or a driver "
    "where there is no setting for it.",
    "CLD-008": "A pool or an image on Azure needs something that Azure doesn't offer: more than 100 machines in one "
    "InfiniBand network, reserved capacity that isn't named by the id of its group or is combined with rdma or a "
    "placement, more labels and taints than a scale set can have tags, or an image that isn't named in one of Azure's "
    "forms.",
    "CLD-009": "Machines on Google Cloud need something that their series doesn't support: a kind of disk for an etcd "
    "that can't be attached, or rdma without Tier_1 networking. Or a reservation isn't named in a form that the API "
    "accepts.",
    "CLD-010": "A machine image isn't named in a form that its cloud accepts.",
    "CLD-011": "The cluster would exceed a limit of its cloud, which an `up` would meet half-way: rules of a security "
    "group (60 on AWS, or control_plane.security_group_rules), characters of a role's policy, addresses in the rules of a "
    "firewall, or conditional grants of a role. The message has the sum.",
    "INV-001": "Two hosts have the same name, address, MAC or BMC, or a host has a name of the API or of the control "
    "plane's hosts. Or two pools name the same hosts file.",
    "INV-002": "A MAC isn't six bytes of one card: malformed, zero, multicast or broadcast.",
    "INV-003": "A machine isn't the one in the hosts file: its BMC reports other MACs. BMC cables or addresses are "
    "swapped, or a card was replaced. The machine's BMC reports this (`menagerie status CLUSTER machines`) before "
    "anything is installed; for cards of `links`, the machine itself does (role links, `menagerie-links`).",
    "INV-004": "A machine doesn't have the address in the hosts file, so it is a different machine or isn't set up. The "
    "machine itself reports this.",
    "INV-005": "A host's address is outside its rack's range, or one that no host can have.",
    "INV-006": "A limit, a tag or the inventory itself matches nothing: a run would do nothing and report success.",
    "INV-007": "A pool's site or a host's rack isn't declared.",
    "INV-008": "A pool has neither machines at a site (site, hosts) nor machines of the cloud (machine, min, max), or has "
    "both.",
    "INV-009": "Kubernetes refuses the label or taint, or a kubelet may not set it on its own node.",
    "INV-010": "Two sites of a lab have a rack with the same name. Outside a lab they may: a rack is identified by its "
    "site and its name. A lab makes one network for each name.",
    "INV-011": "The kind of a pool's machines isn't in cluster/hardware/machines.yaml, or a pool in the region has "
    "settings for machines at a site. Hosts compare themselves with their kind before they take work.",
    "INV-012": "A host has the name of a pool, a site or one of Ansible's groups. A run limited to that name could mean "
    "either.",
    "KRN-001": "A kernel parameter isn't one word that a boot loader's file can hold, belongs to the boot loader (root=, "
    "init=), or has its own key (iommu=, hugepages=).",
    "KRN-002": "A pool in the region has kernel settings, or a number of machines that may reboot at the same time. Its "
    "machines boot an image and are replaced.",
    "KRN-003": "Impossible kernel settings: a parameter given twice, one with which no kubelet works, or huge pages that "
    "leave a machine of this kind no memory.",
    "KRN-004": "Kernel settings with unexpected costs in speed or safety: an IOMMU that translates between GPUs, ACS left "
    "on with an IOMMU, mitigations off. Only a warning; docs/how-to/reboot.md has the sources.",
    "ARP-001": "The neighbour table is too small for the largest layer-2 network.",
    "ARP-002": "Neighbour thresholds don't rise, or one is given without the next.",
    "ARP-003": "gc_thresh3 is above 100,000, the largest value known to work in any cluster. Only a warning.",
    "LNK-001": "A link can't be identified or named: neither a PCI address nor a MAC says which port it is, two links are "
    "the same port, or its name is one that the kernel assigns.",
    "LNK-002": "Two cables at one port of a switch, or a switch without its port.",
    "LNK-003": "A link that is a rail of the RDMA fabric has an MTU that the fabric can't use.",
    "LNK-004": "Links for a pool of another site, or a cable at a link that its pool doesn't have.",
    "LNK-005": "A cable leads to a different switch or port than in the hosts file, or to none. The machine itself "
    "reports this, from what the switch announces (LLDP).",
    "LNK-006": "Packets of the size in the spec don't get through unfragmented: to a machine in the same rack, to the "
    "router, to another rack, or to the API. The machine itself reports this.",
    "LNK-007": "A card doesn't accept a setting: a ring above its maximum, a fixed feature, an MTU. The machine itself "
    "reports this.",
    "ROC-001": "A machine's port has no RDMA with RoCE v2, or isn't a port: a bond, a virtual function, a card of another "
    "maker. The machine itself reports this when its ports are set up.",
    "ROC-002": "With this link MTU Linux silently uses a smaller RoCE MTU than the fabric's: in the spec, at a machine's "
    "port, or at a switch (`menagerie roce plan --facts`).",
    "ROC-003": "Hosts and switches, or RDMA and its congestion notifications, don't agree on marks and priorities: what "
    "is lossless at one end is dropped, or pauses other traffic, at the other.",
    "ROC-004": "RoCE for machines that aren't the site's own: workers in the region, machines of another site or of a "
    "lab.",
    "ROC-005": "A rail isn't a port, names one in two ways, or is another rail's port.",
    "CPH-001": "The number of Ceph's monitors is even, larger than the number of storage hosts, on so few racks that the "
    "loss of one takes a majority, or 1 in production.",
    "CPH-002": "There are more replicas than storage hosts, or than racks with storage hosts if the rack is the failure "
    "domain, or only one in production. Two are only a warning.",
    "CPH-003": "A pool of storage hosts isn't one of the site's own with machines, a storage host has the name of a rack, "
    "or two sites have Ceph: Rook's release grants rights for one.",
    "CPH-004": "Ceph's public network is outside the site's racks, or excludes a storage host; or its cluster network "
    "overlaps another range.",
    "CPH-005": "A rule for disks matches every disk, none, or those of another rule, or isn't a name in /dev/disk/by-id.",
    "CPH-006": "The teams' quotas together don't fit on the disks, a team has no quota, or its disks aren't declared.",
    "CPH-007": "A disk of a storage host isn't empty, is in use, or doesn't exist. Rook takes only empty devices. The "
    "host itself reports this, in role storage_host and in `menagerie-disks`.",
    "MET-001": "A price of an hour isn't above 0, or is given for a pool in the region, whose prices are in autoscaler.prices.",
    "MET-002": "A key is given where the name of a secret is expected. The message never repeats it.",
    "MET-003": "metering can't work: without tenancy nobody runs controllers, and in a cloud a pod has no login for the bucket "
    "without metering.key.",
    "MET-004": "The ledger can't count the day that has not ended so often, or so seldom.",
    "MET-005": "What the ledger should know of energy can't be: watts of machines in the region, or idle ones above busy ones, a price "
    "of a kWh that isn't above 0, or a BMC's login for pods that may do more than read.",
    "PRV-001": "An address that installers fetch from isn't plain http:// or https://, or contains a user or password.",
    "PRV-002": "A machine of a provisioned site has no MAC, which identifies it when it boots, or no BMC although the "
    "site has provisioning.bmc.",
    "PRV-003": "The rule for the system disk matches every disk, none, or one of Ceph's, or isn't a name in "
    "/dev/disk/by-id.",
    "PRV-004": "A BMC password is given where the name of a secret is expected. The message never repeats it.",
    "PRV-005": "A value isn't the line of a public SSH key, and may be a private one. The message never repeats it.",
    "PRV-006": "BMCs have no way to verify their certificates (ca or pins), or two; or there are media but no BMC to "
    "attach them.",
    "PRV-007": "The router's address isn't in a rack's range, or belongs to a machine.",
    "PRV-008": "A lab has provisioning, but its machines don't boot anything.",
    "PRV-009": "provisioning.first_stage without https: anybody on the machines' network could answer what they fetch.",
    "REG-001": "A registry or its mirror isn't host:port, as at the start of an image's name.",
    "REG-002": "Mirrors that don't fit together: the same one twice for a registry, a registry as its own mirror, or a CA "
    "for mirrors without TLS. Or, only a warning, mirrors without TLS: teams' images that are pulled by tag can be "
    "changed on the way; Menagerie's own are pulled by digest.",
    "REG-003": "The file with the mirrors' CA doesn't exist, has no certificate, or has a private key.",
    "RPR-001": "A condition for broken nodes is listed twice, is one that healthy nodes have, or needs something that its "
    "action can't do.",
    "RPR-002": "A brake of repairs never stops them (all nodes of a pool or of the cluster). Or, only a warning, it "
    "allows less than one node, so no node of a pool is ever repaired. docs/how-to/repair.md has the sources of the "
    "defaults.",
    "RPR-003": "Repair times contradict each other: a repair that is forgotten before its node could be found broken "
    "again is repeated indefinitely, and a window shorter than a node's startup counts nothing.",
    "RPR-004": "Machines are to be reinstalled, but no site has BMCs to do it with. Or, only a warning, a site has no "
    "first_stage: repair refuses to install its machines, because anybody on their network could answer as the server.",
    "SCH-001": "A pool keeps more idle workers warm than its max.",
    "SCH-002": "The spec has gangs, but its Kubernetes release can't place pods all together or not at all. "
    "docs/how-to/gangs.md lists the releases.",
    "SEC-001": "A key, a user or a password is given in clear text where a path or an address is expected; the message "
    "never repeats it. Or a key from other tools that would weaken TLS, CAs or encryption at rest, which have no "
    "setting.",
    "SEC-002": "Names for the API's certificate. They follow from the spec, so that none is missing: the name and "
    "addresses of the API, the first address of services, and control_plane.public.name.",
    "VER-001": "A version for kubelets, as in other tools. Here nodes run the version of their API servers: a kubelet "
    "that is newer, or more than three minor versions older, isn't supported (Version Skew Policy).",
    "VER-002": "A minor version of Kubernetes that this release's flags aren't tested with; in a lab, any version that "
    "isn't built for it. `menagerie upgrade` moves a cluster from one supported minor version to the next.",
    "VER-003": "A version for etcd, as in other tools. This release is tested with one version; older ones have known "
    "ways around etcd's authorization, and an upgrade must pass through each minor version.",
    "VER-004": "Flags or feature gates, as in other tools. This release has flags that fit its versions; a program "
    "doesn't start with a flag that it doesn't know.",
    "PUB-001": "The name of the public endpoint can't be found on the internet or belongs to another cluster, or the "
    "endpoint admits ranges from which no packet arrives over the internet.",
    "PUB-002": "Nobody could reach the cluster: firewalls admit only control_plane.operators, control_plane.public and "
    "joined sites, and the spec has none of them. A warning if there is only the public endpoint, which reaches no member of etcd.",
    "PUB-003": "control_plane.operators, or public.operators, admits everybody, or a range too large for a single owner. "
    "allow_any_operator next to it accepts that.",
    "ASC-001": "autoscaler names a pool that doesn't exist, is at a site, or can neither grow nor shrink.",
    "ASC-002": "autoscaler has no pool to grow: none in the region has a max above its min.",
    "ASC-003": "Times of autoscaler contradict each other: a first backoff longer than the longest, a longer wait for "
    "spot machines than for others, or a host that would be idle long enough before the next check.",
    "ASC-004": "autoscaler.removed_step is above repair.max_removed, so every full step would be refused.",
    "ASC-005": "A price in autoscaler isn't above 0, or a number of interruptions is out of range or given for a pool "
    "that isn't spot.",
    "STO-001": "storage.controllers doesn't name a pool in the region with machines. A pool with GPUs is only a warning: "
    "controllers of volumes are a few small processes.",
    "STO-002": "storage.block_disk isn't a kind of network disk that the cloud has; with --allow-unknown this is a "
    "warning. Or, only a warning, a pool's machines can't have disks of that kind.",
    "STO-003": "storage has settings for volumes, but no driver can run: in a lab, or without workers in the region.",
    "TEN-001": "tenancy.directory has no directory, or two; or the file with its CA can't be read.",
    "TEN-002": "The connection to the directory isn't encrypted: by changing an answer, anybody could join any team. Or "
    "TLS would start twice, or a server's URL isn't valid.",
    "TEN-003": "A password is given where the name of a secret is expected (the message never repeats it), or bind_dn and "
    "password aren't given together: for servers a name without a password is an anonymous login.",
    "TEN-004": "A prefix isn't a valid start of a namespace's name, or people and teams have the same one (only a "
    "warning).",
    "TEN-005": "A search filter, an attribute or a distinguished name isn't valid.",
    "TEN-006": "A quota or limit isn't a quantity of Kubernetes, is for an unknown resource, or a container's default is "
    "above its maximum.",
    "TEN-007": "tenancy.refuse_loss would accept that nearly everybody has left at once.",
    "TEN-008": "pod_security is privileged. Only a warning.",
    "TEN-009": "A team's member or owner isn't a person in the file.",
    "TEN-010": "A person's or team's name doesn't make a valid namespace name, makes one reserved by Kubernetes or "
    "Menagerie, or isn't a valid user name: letters, digits, '.', '_', '@', '+' and '-', starting with a letter or "
    "digit.",
    "TEN-011": "Two people or teams would have the same namespace.",
    "TEN-012": "An allocation, or tenancy.controllers, names a pool that doesn't exist or never has a machine, or a team "
    "has two allocations of one pool.",
    "TEN-013": "The allocations of a pool add up to more hosts than it has.",
    "TEN-014": "A pool with allocations has its own label or taint openai.com/team, which would be removed from its "
    "hosts.",
    "TEN-015": "tenancy.borrowing isn't in whole seconds, or gives a checkpoint more time than pods may ask for.",
    "TEN-016": "The objects allowed in one namespace, or in all namespaces of the people file, are more than etcd.main "
    "holds if each is as large as etcd accepts. Only a warning; tenancy.overcommit says by how much they may exceed it.",
    "MON-001": "The cluster would have more series of metrics than monitoring.max_series. They are computed from the largest "
    "size of its pools and from the metrics that are kept; `menagerie show monitoring` has the sum of each scrape job.",
    "MON-002": "Prometheus' disk is too small for monitoring.retention, or the retention is shorter than the two hours of one "
    "of its blocks.",
    "MON-003": "monitoring.keep has something that isn't the name of a metric, or a metric that the catalogues lack. "
    "--allow-unknown turns the latter into a warning; its series aren't counted.",
    "MON-004": "Prometheus has less memory than the cluster's series need.",
    "MON-005": "A receiver of alerts isn't http:// or https:// with a host, has a user or password in its URL, which everybody "
    "who reads the spec would read, or is the same as another one.",
    "MON-006": "There are receivers of alerts, but nothing that notices when no alert can be sent any more "
    "(monitoring.dead_mans_switch). Or, alerts leave for another network unencrypted. Warnings.",
    "VPN-001": "An edge router is listed twice, has two ASNs, or joins a site without racks, to which no packet would be "
    "sent. Routers are part of the site that they join, so neither can be named without the other.",
    "VPN-002": "A site has only one edge router; losing it cuts every worker of the site off from its control plane.",
    "VPN-003": "A site has workers but no vpn, while another site has one. Only a warning: the site may have its own line "
    "to the region. The way back needs no setting and can't be turned off: logs, exec and webhooks use tunnels that "
    "konnectivity agents open, and a joined site's racks are announced to the cloud.",
    "VPN-004": "A pre-shared key is given where the name of a secret is expected, or where no key belongs. The message "
    "never repeats it.",
    "VPN-005": "The ASN is reserved by the cloud, its gateway or IANA's registry, or two sites of a cluster share it: BGP "
    "drops a route with its own ASN in the path.",
    "VPN-006": "The address range inside a site's tunnels is too small, isn't one that the cloud's gateway accepts, or "
    "overlaps the range of another site, or of another cluster at the same router.",
    "VPN-007": "An edge router's address isn't public, so no gateway of a cloud could reach it. Addresses of RFC 5737, "
    "for documentation, are accepted.",
    "VPN-008": "The machine of an edge router is also a worker or another router, or differs from the one in another "
    "cluster's spec.",
    "VPN-009": "An edge router has neither a pre-shared key nor a certificate, or both, or a certificate where it can't "
    "be used: Google Cloud's gateway doesn't support them, and this release can't set one up for Azure's.",
    "VPN-010": "The settings of an edge router's certificate aren't valid: the ARN is of another service or region, two "
    "routers (or a router and its CA) have the same file, or the ends of the gateway don't have one name each.",
}


def reference() -> str:
    """Return the text of docs/reference/errors.md, with a heading for every code."""
    head = (
        "# Errors of a spec\n\n"
        "`menagerie check` reports all of them in one run, as `file:line:column: error[CODE] message`, followed by the\n"
        "reason and a way to fix it. Exit code 2; nothing has been changed. A `warning` doesn't stop anything.\n"
    )
    return head + "".join(f"\n## {code}\n\n{meaning}\n" for code, meaning in sorted(MEANING.items()))
