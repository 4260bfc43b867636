"""`up`, `destroy`, `secret` and `kubeconfig`: their arguments."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.examples import examples
from cli.holding import holds
from cli.options import (
    AllowUnknownOpt,
    ClusterArg,
    DiffOpt,
    DryOpt,
    JsonOpt,
    LimitOpt,
    TagsOpt,
    YesOpt,
    pattern,
    words,
)
from cli.specs import checked, to_build


@examples(
    ("up lab --dry-run", "show what would change"),
    ("up lab --dry-run --diff", "also in files on workers"),
    ("up lab", "ask, then build"),
    ("up lab --yes", "build without asking; for scripts"),
    ("up lab --limit rack_onprem_r1", "of workers, only one rack"),
    ("up lab --tags neighbours", "of workers, only one role"),
    ("up lab --json > up.json", "for a program; does not ask"),
)
@holds("wait")
def up(
    cluster: ClusterArg,
    limit: LimitOpt = None,
    tags: TagsOpt = None,
    diff: DiffOpt = False,
    allow_unknown: AllowUnknownOpt = False,
    dry_run: DryOpt = False,
    yes: YesOpt = False,
    as_json: JsonOpt = False,
) -> None:
    """Build a cluster, or reconcile it with its spec. A second run changes nothing.

    Creates or updates the cluster's stack with Pulumi: in its cloud with your
    credentials, or, for the lab, on this machine as root. Then configures workers
    at sites with Ansible, and waits until all nodes are Ready and the cluster is
    healthy. Idempotent: if interrupted, run it again.

    Clouds have been tested in simulation only, not yet with a real account.

    --dry-run shows Pulumi's changes in the cloud, by component: + new, ~ changed,
    ± replaced, - deleted. Data that would be lost permanently is red. Then it
    counts the machines, disks and addresses. For workers it runs Ansible in check
    mode; --diff shows how their files differ. The exit code is 0 with and without
    changes.
    """
    if diff and not dry_run:
        raise typer.BadParameter("--diff is for --dry-run")
    loaded = to_build(cluster, allow_unknown=allow_unknown)
    from cli.actions import build

    selection = build.Selection(pattern(limit), words(tags))
    if dry_run:
        build.preview(loaded, selection, diff=diff, as_json=as_json)
    else:
        build.up(loaded, selection, yes=yes or as_json, as_json=as_json)


@examples(
    ("destroy lab --dry-run", "show what would be deleted"),
    ("destroy lab", "ask for the cluster's name, then delete"),
    ("destroy lab --yes", "delete without asking; for scripts"),
    ("destroy horus --with-data", "also disks, keys and backups"),
)
@holds("wait")
def destroy(
    cluster: ClusterArg,
    with_data: Annotated[
        bool, typer.Option("--with-data", help="Also delete protected data in the cloud: etcd's disks, keys, backups.")
    ] = False,
    dry_run: DryOpt = False,
    yes: YesOpt = False,
    as_json: JsonOpt = False,
) -> None:
    """Delete a cluster. Asks for the cluster's name first.

    Resources that keep data in a cloud are protected. Without --with-data, the
    verb lists them and changes nothing. With --json, --yes is needed too.
    """
    loaded = checked(cluster)
    from cli.actions import build

    build.destroy(loaded, with_data=with_data, dry_run=dry_run, yes=yes, as_json=as_json)


@examples(
    ("secret jaguar vpn-sjc1-edge-1", "type it, without echo"),
    ("secret jaguar vpn-sjc1-edge-1 < key", "from a file or a pipe"),
    ("secret jaguar vpn-sjc1-edge-1 --dry-run", "whether one is stored"),
)
def secret(
    cluster: ClusterArg,
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="Name as in the spec, such as in sites.<site>.vpn.routers.<r>.psk.")
    ],
    dry_run: DryOpt = False,
) -> None:
    """Store a secret that the spec names, encrypted, in the stack's configuration.

    The same with the ordinary Pulumi CLI: pulumi config set --secret NAME
    """
    loaded = checked(cluster)
    from cli.actions import build

    build.secret(loaded, name, dry_run=dry_run)


@examples(
    ("kubeconfig lab", "prints only the path"),
    more='\n.menagerie/bin/kubectl --kubeconfig "$(./menagerie kubeconfig lab)" get nodes',
)
def kubeconfig(cluster: ClusterArg) -> None:
    """Write a kubeconfig for this machine and print its path. Only you can read the file."""
    loaded = checked(cluster)
    from cli.actions import clusters

    clusters.kubeconfig(loaded)
