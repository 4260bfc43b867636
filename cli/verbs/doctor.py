"""`doctor`: its arguments."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cli.examples import examples
from cli.options import ClusterArg, JsonOpt
from cli.specs import checked


@examples(
    ("doctor jaguar", "before the first up"),
    ("doctor examples/horus", "a cluster outside inventories/"),
    ("doctor jaguar --json", "for a program"),
    ("doctor jaguar --image-manifest m", "also an image"),
)
def doctor(
    cluster: ClusterArg,
    image_manifest: Annotated[
        Path | None,
        typer.Option(
            "--image-manifest",
            metavar="FILE",
            exists=True,
            dir_okay=False,
            help="An image's manifest, by examples/images/manifest.py or `dpkg-query -W`.",
        ),
    ] = None,
    as_json: JsonOpt = False,
) -> None:
    """Ask whether the account and this machine are ready for `up`. Changes nothing.

    With your credentials, by requests that only read: who you are, the rights of
    the operator, quotas against the plan, registrations, zones, machine types,
    images, and names that are taken. Without credentials: programs, checksums,
    the state, downloads and DNS; the rest is `not asked`.

    Each line says what was found, what the plan needs, and the command that mends
    it. Exit code 0 if all is ok, 1 if something is wrong, 4 if only something is
    and nothing wrong. docs/how-to/doctor.md has each question and its rights.

    Never run against a real account yet, only against moto and fakes of the
    documented HTTP.
    """
    loaded = checked(cluster)
    from cli.actions import doctor

    doctor.doctor(loaded, image_manifest, as_json=as_json)
