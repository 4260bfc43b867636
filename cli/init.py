"""`init`: a folder for a new cluster, and what to do next."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.options import DryOpt, JsonOpt, examples
from cli.output import console, print_json
from cluster.errors import RefusedError
from cluster.project import ROOT

if TYPE_CHECKING:
    from operations.init import Prepared


class Where(StrEnum):
    """Where workers are; the control plane is in the same cloud, but for a site's."""

    AWS = "aws"
    AZURE = "azure"
    GCP = "gcp"
    LAB = "lab"
    SITE = "site"


class Plane(StrEnum):
    """Where the control plane of a site's workers is."""

    AWS = "aws"
    AZURE = "azure"
    GCP = "gcp"
    LAB = "lab"


@examples(
    ("init koala --cloud aws", "workers in the region"),
    ("init koala --cloud gcp --gpu h100", "and a pool of GPUs"),
    ("init koala --cloud site --control-plane gcp", "your own racks"),
    ("init koala --cloud lab", "on this machine"),
    ("init koala --cloud aws --dry-run", "only show the files"),
)
def init(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Of the cluster, its folder and its Pulumi stack.")],
    cloud: Annotated[Where, typer.Option("--cloud", help="Where workers are; site: in racks of your own.")],
    region: Annotated[
        str, typer.Option("--region", metavar="REGION", help="Default: the one that offers most machine types.")
    ] = "",
    gpu: Annotated[
        str, typer.Option("--gpu", metavar="KIND", help="Add a pool with these GPUs: h100, or a machine type.")
    ] = "",
    control_plane: Annotated[
        Plane | None, typer.Option("--control-plane", help="With --cloud site: where API servers are. Default: aws.")
    ] = None,
    dry_run: DryOpt = False,
    as_json: JsonOpt = False,
) -> None:
    """Write a small, commented, valid spec for a new cluster into inventories/.

    Its ranges of addresses are free in your fleet. It passes check and validate
    as it is; what only you know is marked PLACEHOLDER. Touches nothing else, and
    says the next steps.
    """
    from cluster.spec import Cloud
    from cluster.starter import Asked
    from operations import init as operation

    at_site = cloud is Where.SITE
    if control_plane and not at_site:
        raise typer.BadParameter("--control-plane is for --cloud site; elsewhere it is where the workers are")
    plane = Cloud((control_plane or Plane.AWS) if at_site else cloud)
    try:
        prepared = operation.prepare(Asked(name, plane, at_site, region, gpu), ROOT)
        if not dry_run:
            operation.write(prepared)
    except FileExistsError as error:
        raise RefusedError(str(error), code="init-refused") from None
    if as_json:
        print_json(_document(prepared, written=not dry_run))
    else:
        _print(prepared, chosen=bool(region), written=not dry_run)


def _document(prepared: Prepared, *, written: bool) -> dict[str, Any]:
    made = prepared.starter
    return {
        "cluster": prepared.cluster.name,
        "cloud": made.asked.cloud,
        "region": made.region,
        "ranges": made.ranges.named(),
        "written": written,
        "files": {_shown(prepared, name): text for name, text in made.files.items()},
        "placeholders": {each.path: each.why for each in made.placeholders},
        "secrets": made.secrets,
        "checksums_lacking": prepared.lacking,
        "next": [command for command, _ in _commands(prepared)],
    }


def _print(prepared: Prepared, *, chosen: bool, written: bool) -> None:
    made = prepared.starter
    if not written:
        for name, text in made.files.items():
            console.print(f"--- {_shown(prepared, name)}\n{text}", markup=False)
    default = "" if chosen or prepared.cluster.is_lab else " (the default; --region chooses another)"
    ranges = ", ".join(f"{name} {network}" for name, network in made.ranges.named().items())
    lines = [f"{prepared.cluster.name}: {made.asked.cloud} {made.region}{default}; {ranges}"]
    lines.append(f"{'wrote' if written else 'would write'} {', '.join(_shown(prepared, name) for name in made.files)}")
    console.print("\n".join([*lines, "", "Next:", *_steps(prepared)]), markup=False)


def _steps(prepared: Prepared) -> list[str]:
    """In the order in which they are done, each with its number."""
    made, steps, named = prepared.starter, [], _commands(prepared)
    width = max(len(command) for command, _ in named)
    commands = [f"{command:<{width}}  {what}" for command, what in named]
    if made.placeholders:
        lines = [f"     {each.path}: {each.why}" for each in made.placeholders]
        steps.append("\n".join(["replace what is marked PLACEHOLDER:", *lines]))
    steps += commands[:1]
    if prepared.lacking:
        lines = [f"     {source}" for source in prepared.lacking]
        head = f"give the SHA-256 of {len(lines)} downloads in artefacts.sha256; `up` refuses to start without them:"
        steps.append("\n".join([head, *lines]))
    steps += commands[1:]
    return [f"  {number}. {step}" for number, step in enumerate(steps, start=1)]


def _commands(prepared: Prepared) -> list[tuple[str, str]]:
    """(command or page, what it is for)."""
    from operations.init import page_of

    name, made = prepared.cluster.name, prepared.starter
    page = page_of(made.asked)
    up = (f"./menagerie up {name}", "builds it; asks first")
    check = (f"./menagerie check {name}", "every mistake at once")
    if prepared.cluster.is_lab:
        return [check, (page, "what the lab needs; one machine holds one lab at a time"), up]
    validate = (f"./menagerie validate {name}", "in a simulated cloud; needs no account")
    secrets = [(f"./menagerie secret {name} {each}", "an edge router's key; asks, unseen") for each in made.secrets]
    sites = [("docs/how-to/hybrid.md", "the site's side")] if secrets else []
    return [check, validate, (page, "from step 2: account, credentials, state"), *secrets, *sites, up]


def _shown(prepared: Prepared, file: str) -> str:
    return f"{prepared.folder.parent.name}/{prepared.folder.name}/{file}"
