"""The command `menagerie`: thin. Each verb loads, calls one package and prints.

Heavy packages are imported inside the verbs that use them: `check` answers in well under a second,
and the Pulumi SDK alone takes longer to import. Errors go up to `cli.running`.
"""

from __future__ import annotations

from typing import Annotated

import typer

from cli import (
    audit,
    autoscaler,
    capacity,
    ceph,
    configure,
    controllers,
    etcd,
    exits,
    expander,
    keys,
    links,
    machines,
    operations,
    policies,
    reboot,
    repair,
    roce,
    status,
    tenancy,
    topology,
    upgrade,
    validate,
    vpn,
)
from cli.options import AllowUnknownOpt, ClusterArg, JsonOpt, LimitOpt, SureOpt, TagsOpt, YesOpt, examples, words
from cli.output import console, print_json, print_problems, write_out
from cli.specs import checked, load, to_build
from cluster import schema as json_schema
from cluster.load import clusters as known_clusters
from cluster.project import ROOT
from cluster.sources import told_checksums

app = typer.Typer(
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Build and look after Kubernetes clusters for GPU research: one cluster a region, control plane and "
    "two etcds in a cloud, workers there or on your own floor.",
    epilog=examples(
        ("check", "are all specs in inventories/ right?"),
        ("up lab", "a real cluster on this machine, as root"),
        ("status lab", "how it is"),
        ("verify lab", "prove that it works"),
        ("destroy lab", "take it down"),
    )
    + "\n\nExit codes: 0 done, 1 failed, 2 bad input, 3 locked by another run,\n4 workers unreachable, 5 state of stacks unreadable, 130 interrupted.\n"
    'With --json a failure is a document too: {"error": {"code", "text", "exit_code"}}.',
)


@app.callback()
def _top(
    debug: Annotated[
        bool,
        typer.Option("--debug", help="Show where an error arose; anywhere on the line, or MENAGERIE_DEBUG=1."),
    ] = False,
) -> None:
    """Options of every verb. `cli.running` takes --debug out of the line; here it is for the help page."""


@app.command(
    epilog=examples(
        ("check", "all in inventories/, also together"),
        ("check lab", "one, by name"),
        ("check new/cluster.yaml", "one that is not in inventories/ yet"),
        ("check --allow-unknown", "a machine type newer than the catalogue"),
        ("check --json", "for an editor or a CI job"),
    )
)
def check(
    clusters: Annotated[
        list[str] | None,
        typer.Argument(metavar="CLUSTER", help="Names or paths; without any, every cluster in inventories/."),
    ] = None,
    allow_unknown: AllowUnknownOpt = False,
    as_json: JsonOpt = False,
) -> None:
    """Load and check specs and the files that they name, all errors at once. Touches nothing.

    Several specs are also checked against each other: names and address ranges.
    Each error tells file, line, column, a code that docs/reference/errors.md explains, and
    a way out. Exit 2 when there is one.
    """
    loaded, problems = load(clusters or known_clusters(ROOT), allow_unknown=allow_unknown, with_people=True)
    failed = any(problem.is_error for problem in problems)
    names = [one.cluster.name for one in loaded]
    if as_json:
        print_json({"clusters": names, "problems": [problem.to_json() for problem in problems]})
    else:
        print_problems(problems)
        if not failed:
            console.print(f"{len(names)} checked, no errors: {', '.join(names)}", markup=False)
            for one in loaded:
                lines = [f"  {line}" for line in told_checksums(one.cluster.spec)]
                if lines and len(loaded) > 1:
                    lines = [
                        f"  of {len(lines) - 1}, without which `up` does not begin: ./menagerie check {one.cluster.name} names them"
                    ]
                if lines:
                    console.print(
                        "\n".join([f"{one.cluster.name} lacks checksums", *lines]), markup=False, soft_wrap=True
                    )
    raise typer.Exit(exits.BAD_INPUT if failed else exits.DONE)


@app.command(epilog=examples(("schema > cluster.schema.json", "")))
def schema() -> None:
    """Print the JSON Schema of cluster.yaml, for editors.

    An editor with a YAML language server completes and explains every key when
    the first line of cluster.yaml is:
    # yaml-language-server: $schema=cluster.schema.json
    """
    write_out(json_schema.text())


@app.command(
    epilog=examples(
        ("flows jaguar", "from its spec; nothing need be built"),
        ("flows jaguar --json", "for a firewall of your own"),
    )
)
def flows(cluster: ClusterArg, as_json: JsonOpt = False) -> None:
    """Show who talks to whom on which port, and why. Reads the spec only.

    docs/reference/flows.md explains it. What is not in the table is closed.
    """
    from cli import flows as table

    table.show(checked(cluster, allow_unknown=True), as_json=as_json)


app.command(epilog=audit.EXAMPLES)(audit.audit)
app.command(epilog=capacity.EXAMPLES)(capacity.capacity)
app.command(epilog=configure.EXAMPLES)(configure.configure)
app.command(epilog=operations.EXAMPLES)(operations.operations)
app.command(epilog=operations.UNLOCK_EXAMPLES)(operations.unlock)
app.command(epilog=policies.EXAMPLES)(policies.policies)
app.command(epilog=reboot.EXAMPLES)(reboot.reboot)
app.command(epilog=status.EXAMPLES)(status.status)
app.command(epilog=repair.EXAMPLES)(repair.repair)
app.command(epilog=topology.EXAMPLES)(topology.topology)
app.command(epilog=upgrade.EXAMPLES)(upgrade.upgrade)
app.command(epilog=validate.EXAMPLES)(validate.validate)
app.add_typer(autoscaler.app, name="autoscaler")
app.add_typer(ceph.app, name="ceph")
app.add_typer(controllers.app, name="controllers")
app.add_typer(etcd.app, name="etcd")
app.add_typer(expander.app, name="expander")
app.add_typer(keys.app, name="keys")
app.add_typer(links.app, name="links")
app.add_typer(machines.app, name="machines")
app.add_typer(roce.app, name="roce")
app.add_typer(tenancy.app, name="tenancy")
app.add_typer(vpn.app, name="vpn")


@app.command(
    epilog=examples(
        ("preview lab", "what would `up` do?"),
        ("preview lab --diff", "differences of workers' files too"),
        ("preview lab --limit worker-1", "one worker"),
        ("preview lab --json", "for a machine"),
    )
)
def preview(
    cluster: ClusterArg,
    limit: LimitOpt = None,
    tags: TagsOpt = None,
    diff: Annotated[bool, typer.Option("--diff", help="Show what would change in files on workers.")] = False,
    allow_unknown: AllowUnknownOpt = False,
    as_json: JsonOpt = False,
) -> None:
    """Show what `up` would change, and change nothing.

    The cloud side by Pulumi, by component: + new, ~ changed, ± replaced, - deleted,
    in red what would be lost for good; then how many machines, disks and addresses
    it all takes. The workers by Ansible in check mode.
    Exit 0 whether or not something would change.
    """
    from cli import build
    from operations.build import Selection

    build.preview(
        to_build(cluster, allow_unknown=allow_unknown), Selection(limit, words(tags)), diff=diff, as_json=as_json
    )


@app.command(
    epilog=examples(
        ("up lab", "says what it will build, asks"),
        ("up lab --yes", "asks nothing, for scripts"),
        ("up lab --limit rack_onprem_r1", "only the workers of a rack"),
        ("up lab --tags neighbours", "only one role of workers"),
        ("up lab --json > up.json", "for a machine; asks nothing"),
    )
)
def up(
    cluster: ClusterArg,
    yes: YesOpt = False,
    limit: LimitOpt = None,
    tags: TagsOpt = None,
    allow_unknown: AllowUnknownOpt = False,
    as_json: JsonOpt = False,
) -> None:
    """Bring the cluster to what its spec says; a second run changes nothing.

    Safe to interrupt at any moment: run it again and it goes on.
    Of the clouds, only lab is built so far: a data centre on this machine.
    """
    from cli import build
    from operations.build import Selection

    one = to_build(cluster, allow_unknown=allow_unknown)
    build.up(one, Selection(limit, words(tags)), yes=yes or as_json, as_json=as_json)


@app.command(
    epilog=examples(
        ("destroy lab", "asks for the cluster's name first"),
        ("destroy lab --yes", "asks nothing, for scripts"),
        ("destroy horus --with-data", "also disks, keys, backups"),
    )
)
def destroy(
    cluster: ClusterArg,
    with_data: Annotated[
        bool, typer.Option("--with-data", help="Also what is protected in a cloud: disks of etcd, keys, backups.")
    ] = False,
    yes: SureOpt = False,
    as_json: JsonOpt = False,
) -> None:
    """Delete the cluster. Asks for the cluster's name first.

    In a cloud, what keeps data is protected: without --with-data it is listed, and nothing is touched.
    """
    from cli import build

    build.destroy(checked(cluster), with_data=with_data, yes=yes, as_json=as_json)


@app.command(
    epilog=examples(
        ("secret jaguar vpn-sjc1-edge-1", "asks for it, unseen"),
        ("secret jaguar vpn-sjc1-edge-1 < key", "from a file or a pipe"),
    )
)
def secret(
    cluster: ClusterArg,
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="As the spec names it: sites.<site>.vpn.routers.<r>.psk.")
    ],
) -> None:
    """Keep a secret that a spec names, encrypted, in the stack's configuration.

    With the ordinary Pulumi CLI: pulumi config set --secret NAME
    """
    from cli import build

    build.secret(checked(cluster), name)


@app.command(
    epilog=examples(
        ("verify lab", "every proof, minutes"),
        ("verify lab --list", "what each does to the cluster"),
        ("verify lab --only direct,vxlan", "some of them"),
        ("verify lab --json", "what each proof saw"),
    )
)
def verify(
    cluster: ClusterArg,
    only: Annotated[
        list[str] | None,
        typer.Option("--only", metavar="PROOF", help="Run this proof; several with commas, or given again."),
    ] = None,
    list_: Annotated[bool, typer.Option("--list", help="List the proofs and what each does to the cluster.")] = False,
    as_json: JsonOpt = False,
) -> None:
    """Prove that the cluster works, and say how: traffic, DNS, logs, events etcd.

    In the lab also by faults: stops the events etcd, kills an API-server host and
    etcd members, and repairs them. Exit 1 when a proof fails, or all are skipped.
    """
    from cli import look

    look.verify(checked(cluster), only=words(only), list_only=list_, as_json=as_json)


@app.command(
    epilog=examples(("kubeconfig lab", "the path, and nothing else"))
    + '\n.menagerie/bin/kubectl --kubeconfig "$(./menagerie kubeconfig lab)" get nodes'
)
def kubeconfig(cluster: ClusterArg) -> None:
    """Write a kubeconfig that works from this machine and print its path. Only you can read the file."""
    from cli import look

    look.kubeconfig(checked(cluster))
