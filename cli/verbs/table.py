"""Every verb: its group on the help page, its module, one line of help, and whether it changes anything.

A verb's module is imported when the verb is chosen. It imports what the verb does, in `cli.actions`, after its arguments
and the spec are checked, so that help pages and refusals never wait for clients and engines.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple


class Verb(NamedTuple):
    """A verb. name: as typed. at: module of `cli.verbs` and function. says: help in one line. changes: a cluster, hosts or a registry."""

    name: str
    at: str
    says: str
    changes: bool = False


GROUPS: dict[str, tuple[Verb, ...]] = {
    "Clusters": (
        Verb("init", "init:init", "Write a small, commented spec for a new cluster", True),
        Verb("doctor", "doctor:doctor", "Ask whether the account is ready for the first up"),
        Verb("up", "clusters:up", "Build a cluster, or reconcile it with its spec", True),
        Verb("status", "status:status", "Show the health of the fleet, a cluster, or one part"),
        Verb("show", "show:show", "Show what a spec describes, and what a stack outputs"),
        Verb("upgrade", "upgrade:upgrade", "Upgrade Kubernetes on a running cluster, or roll back", True),
        Verb("kubeconfig", "clusters:kubeconfig", "Write a kubeconfig for this machine and print its path"),
        Verb("secret", "clusters:secret", "Store a secret that the spec names", True),
        Verb("keys rotate", "keys:rotate", "Rotate a key or a certificate authority", True),
        Verb("state move", "state:move", "Move a cluster's state to the configured backend", True),
        Verb("unlock", "operations:unlock", "Release a cluster from an abandoned operation", True),
        Verb("destroy", "clusters:destroy", "Delete a cluster", True),
    ),
    "Workers": (
        Verb("configure", "configure:configure", "Configure workers at sites with Ansible", True),
        Verb("reboot", "reboot:reboot", "Drain and reboot the hosts that need it", True),
        Verb("repair", "repair:repair", "Repair or replace broken nodes", True),
    ),
    "Etcd": (
        Verb("etcd backup", "backups:backup", "Make a backup now", True),
        Verb("etcd restore", "etcd_restore:restore", "Restore all members from a backup", True),
        Verb("etcd replace", "etcd_members:replace", "Replace a dead member", True),
        Verb("etcd roll", "etcd_roll:roll", "Move running members to their new payload", True),
        Verb("etcd recover-space", "etcd_space:recover_space", "Recover an etcd that is at its quota", True),
        Verb("etcd defragment", "etcd_space:defragment", "Return free database space to the disks", True),
        Verb("etcd move-leader", "etcd_members:move_leader", "Hand leadership to another member", True),
        Verb("etcd forget", "etcd_members:forget", "Delete data that restore and replace set aside", True),
    ),
    "People": (
        Verb("tenancy sync", "tenancy:sync", "Sync namespaces, rights and quotas with the directory", True),
        Verb("controllers image", "controllers:image", "Build the image of the controllers", True),
        Verb("controllers apply", "controllers:apply", "Run the controllers in the cluster", True),
        Verb("controllers remove", "controllers:remove", "Remove the controllers from the cluster", True),
    ),
    "Scheduling": (
        Verb("autoscaler plan", "autoscaler:plan", "Show what the autoscaler would do, and why"),
        Verb("autoscaler run", "autoscaler:run", "Add hosts for pending pods, remove idle hosts", True),
        Verb("autoscaler simulate", "autoscaler:simulate", "Run a trace of pods in simulated time"),
        Verb("expander run", "expander:run", "Choose node groups for cluster-autoscaler by price"),
    ),
    "Site": (
        Verb("machines render", "machines:render", "Write the files that machines are installed from", True),
        Verb("machines install", "machines:install", "Install machines from bare metal", True),
        Verb("ceph facts", "ceph:facts", "Collect the disks of storage hosts"),
        Verb("ceph render", "ceph:render", "Print the resources for Rook"),
        Verb("roce plan", "roce:plan", "Print switch settings, or compare them with the spec"),
        Verb("roce test", "roce:test", "Measure every pair of hosts on the RDMA fabric", True),
        Verb("vpn request", "vpn:request", "Create keys on edge routers, and their requests", True),
        Verb("vpn configure", "vpn:configure", "Configure edge routers that run Debian", True),
    ),
    "Programs": (
        Verb("bundle", "bundle:bundle", "Write all that clusters download into one signed file", True),
        Verb("mirror push", "mirror:push", "Fill a folder, bucket or registry from a bundle", True),
        Verb("mirror serve", "mirror:serve", "Serve a bundle as a mirror and a registry"),
    ),
    "Fleet": (
        Verb("list", "fleet:list_", "List the clusters in inventories/"),
        Verb("bill", "bill:bill", "Show what teams used, in hours and dollars"),
        Verb("web", "web:web", "Show the fleet in a browser, read-only"),
        Verb("capacity", "capacity:capacity", "Show free capacity, and where a job would start"),
    ),
    "Proof": (
        Verb("check", "proof:check", "Check specs and the files they name"),
        Verb("validate", "validate:validate", "Try stacks in simulated clouds, without an account"),
        Verb("verify", "proof:verify", "Prove that a cluster works, by traffic and faults", True),
        Verb("audit", "audit:audit", "Audit a running cluster against the CIS benchmark"),
        Verb("explain", "proof:explain", "Explain a code of `check` or of a failure"),
    ),
}  # fmt: skip

NOUNS = {
    "autoscaler": "Add hosts for pending pods, remove idle hosts: docs/how-to/autoscaler.md.",
    "ceph": "Storage at a site with Ceph and Rook: docs/how-to/ceph.md.",
    "controllers": "Menagerie's controllers in the cluster: docs/how-to/controllers.md.",
    "etcd": "Maintain etcds. docs/runbooks/etcd.md says which verb helps when.",
    "expander": "Price-aware node group choice for cluster-autoscaler: docs/how-to/expander.md.",
    "keys": "Key rotation: docs/how-to/keys.md.",
    "machines": "Bare-metal installation by PXE or virtual media: docs/how-to/provisioning.md.",
    "mirror": "Mirrors of programs and images, from a bundle: docs/how-to/offline.md.",
    "roce": "RDMA over Ethernet: switch settings and a fabric test: docs/how-to/roce.md.",
    "state": "Where the state of a cluster's stack is kept: docs/how-to/state.md.",
    "tenancy": "People and teams, a namespace for each: docs/how-to/teams.md.",
    "vpn": "Tunnels between sites and a cluster: docs/how-to/vpn.md.",
}


def every() -> Iterator[Verb]:
    """Yield all verbs in the order of the help page."""
    for verbs in GROUPS.values():
        yield from verbs


def chosen(arguments: Sequence[str]) -> Verb | None:
    """Return the verb that a command line starts with."""
    return next((verb for verb in every() if tuple(arguments[: len(words := verb.name.split())]) == (*words,)), None)
