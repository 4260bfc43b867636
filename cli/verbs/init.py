"""`init`: its arguments."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from cli.examples import examples
from cli.options import DryOpt, JsonOpt


class Where(StrEnum):
    """Where workers run. The control plane is in the same cloud, except for a site."""

    AWS = "aws"
    AZURE = "azure"
    GCP = "gcp"
    LAB = "lab"
    SITE = "site"


class Plane(StrEnum):
    """Where the control plane for a site's workers runs."""

    AWS = "aws"
    AZURE = "azure"
    GCP = "gcp"
    LAB = "lab"


@examples(
    ("init koala --cloud aws", "workers in the region"),
    ("init koala --cloud gcp --gpu h100", "with a GPU pool"),
    ("init koala --cloud site --control-plane gcp", "your own racks"),
    ("init koala --cloud lab", "all on this machine"),
    ("init koala --cloud aws --dry-run", "show the files"),
)
def init(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the cluster, its folder and its Pulumi stack.")],
    cloud: Annotated[Where, typer.Option("--cloud", help="Where workers run; site: in your own racks.")],
    region: Annotated[
        str, typer.Option("--region", metavar="REGION", help="Default: the region with the most machine types.")
    ] = "",
    gpu: Annotated[
        str,
        typer.Option(
            "--gpu", metavar="KIND", help="Add a pool with these GPUs: a kind such as h100, or a machine type."
        ),
    ] = "",
    control_plane: Annotated[
        Plane | None, typer.Option("--control-plane", help="With --cloud site: where API servers run. Default: aws.")
    ] = None,
    dry_run: DryOpt = False,
    as_json: JsonOpt = False,
) -> None:
    """Write a small, commented, valid spec for a new cluster into inventories/.

    Its address ranges are free in your fleet. It passes `check` and `validate`
    unchanged; values that only you know are marked PLACEHOLDER. Touches nothing
    else, and prints the next steps.
    """
    at_site = cloud is Where.SITE
    if control_plane and not at_site:
        raise typer.BadParameter(
            "--control-plane needs --cloud site; elsewhere the control plane is where the workers are"
        )
    plane = (control_plane or Plane.AWS) if at_site else cloud
    from cli.actions import init

    init.init(init.Request(name, init.Cloud(plane), at_site, region, gpu), dry_run=dry_run, as_json=as_json)
