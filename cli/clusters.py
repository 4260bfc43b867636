"""`up`, `destroy`, `secret` and `kubeconfig`: what they take. `cli.build` and `cli.look` do the rest, and import the engines."""

from __future__ import annotations

from typing import Annotated

import typer

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
    examples,
    pattern,
    words,
)
from cli.specs import checked, to_build


@examples(
    ("up lab --dry-run", "what would change?"),
    ("up lab --dry-run --diff", "also in files of workers"),
    ("up lab", "says what it will build, asks"),
    ("up lab --yes", "asks nothing, for scripts"),
    ("up lab --limit rack_onprem_r1", "only the workers of a rack"),
    ("up lab --tags neighbours", "only one role of workers"),
    ("up lab --json > up.json", "for a machine; asks nothing"),
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
    """Build a cluster, or bring it to what its spec says. A second run changes nothing.

    Idempotent: if interrupted, run it again. So far only the lab has been built for
    real, a data centre on this machine; clouds have been simulated.

    --dry-run shows the cloud side with Pulumi, by component: + new, ~ changed,
    ± replaced, - deleted, in red what would be lost for good; then how many machines,
    disks and addresses it all takes. Workers run through Ansible in check mode; --diff
    shows the differences of their files. Exit code 0 whether or not something would change.
    """
    if diff and not dry_run:
        raise typer.BadParameter("--diff is for --dry-run")
    one = to_build(cluster, allow_unknown=allow_unknown)
    from cli import build
    from operations.build import Selection

    selection = Selection(pattern(limit), words(tags))
    if dry_run:
        build.preview(one, selection, diff=diff, as_json=as_json)
    else:
        build.up(one, selection, yes=yes or as_json, as_json=as_json)


@examples(
    ("destroy lab --dry-run", "what would be deleted?"),
    ("destroy lab", "asks for the cluster's name first"),
    ("destroy lab --yes", "asks nothing, for scripts"),
    ("destroy horus --with-data", "also disks, keys, backups"),
)
@holds("wait")
def destroy(
    cluster: ClusterArg,
    with_data: Annotated[
        bool, typer.Option("--with-data", help="Also what is protected in a cloud: disks of etcd, keys, backups.")
    ] = False,
    dry_run: DryOpt = False,
    yes: YesOpt = False,
    as_json: JsonOpt = False,
) -> None:
    """Delete a cluster. Asks for the cluster's name first.

    In a cloud, what keeps data is protected: without --with-data it is listed, and
    nothing changes. With --json, --yes is needed too.
    """
    one = checked(cluster)
    from cli import build

    build.destroy(one, with_data=with_data, dry_run=dry_run, yes=yes, as_json=as_json)


@examples(
    ("secret jaguar vpn-sjc1-edge-1", "asks for it, unseen"),
    ("secret jaguar vpn-sjc1-edge-1 < key", "from a file or a pipe"),
    ("secret jaguar vpn-sjc1-edge-1 --dry-run", "is there one already?"),
)
def secret(
    cluster: ClusterArg,
    name: Annotated[str, typer.Argument(metavar="NAME", help="As in the spec: sites.<site>.vpn.routers.<r>.psk.")],
    dry_run: DryOpt = False,
) -> None:
    """Store a secret that the spec names, encrypted, in the stack's configuration.

    With the ordinary Pulumi CLI: pulumi config set --secret NAME
    """
    one = checked(cluster)
    from cli import build

    build.secret(one, name, dry_run=dry_run)


@examples(
    ("kubeconfig lab", "the path, and nothing else"),
    more='\n.menagerie/bin/kubectl --kubeconfig "$(./menagerie kubeconfig lab)" get nodes',
)
def kubeconfig(cluster: ClusterArg) -> None:
    """Write a kubeconfig that works from this machine, and print its path. Only you can read the file."""
    one = checked(cluster)
    from cli import look

    look.kubeconfig(one)
