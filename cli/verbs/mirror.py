"""`mirror push` and `mirror serve`: their arguments."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cli.examples import examples
from cli.options import CertOpt, DryOpt, JsonOpt, KeyOpt, pair

BundleArg = Annotated[Path, typer.Argument(metavar="FILE", help="A bundle that `bundle` wrote.")]
PublicKeyOpt = Annotated[
    Path | None,
    typer.Option(
        "--public-key",
        metavar="FILE",
        help="Public keys whose bundles are accepted. Default: inventories/bundle.pub.",
        show_default=False,
    ),
]


@examples(
    ("mirror push horus.bundle /srv/mirror", "a folder of a web server"),
    ("mirror push horus.bundle s3://bucket --dry-run", "what it lacks"),
    ("mirror push horus.bundle registry://HOST:PORT", "images"),
)
def push(
    bundle: BundleArg,
    target: Annotated[
        str,
        typer.Argument(
            metavar="TARGET",
            help="A folder, s3://BUCKET, gs://BUCKET, azblob://ACCOUNT/CONTAINER, registry://HOST:PORT, or cache:",
        ),
    ],
    public_key: PublicKeyOpt = None,
    dry_run: DryOpt = False,
    as_json: JsonOpt = False,
) -> None:
    """Upload what a mirror lacks of a bundle.

    Folders and buckets get programs and provider plugins, in the layout that
    artefacts.mirror expects, with a checksum next to each file. Registries get
    images. cache: is this machine's cache, which gets what a lab is made of. The whole bundle is verified first. If interrupted, run it again: what
    is there isn't uploaded again. Buckets use the credentials that `up` uses;
    registries the logins in Docker's configuration file.
    """
    from cli.actions import mirror

    mirror.push(bundle, target, public_key, dry_run=dry_run, as_json=as_json)


@examples(
    ("mirror serve horus.bundle --listen 10.8.255.5:8080", "until Ctrl-C"),
    ("mirror serve horus.bundle --cert c.pem --key k.pem", "with TLS"),
)
def serve(
    bundle: BundleArg,
    listen: Annotated[
        str, typer.Option("--listen", metavar="ADDRESS:PORT", help="Where to listen.")
    ] = "127.0.0.1:8080",
    cert: CertOpt = None,
    key: KeyOpt = None,
    public_key: PublicKeyOpt = None,
) -> None:
    """Serve a bundle: its files as a mirror, its images as a registry, read-only.

    The whole bundle is verified first. Without --cert and --key it is
    served without TLS; hosts verify every checksum themselves. The addresses
    for artefacts.mirror and artefacts.registry are printed.
    """
    address, _, port = listen.rpartition(":")
    if not address or not port.isdecimal() or int(port) > 65535:
        raise typer.BadParameter(f"--listen: {listen} isn't ADDRESS:PORT; write for example 127.0.0.1:8080")
    tls = pair(cert, key)
    from cli.actions import mirror

    mirror.serve(bundle, address, int(port), public_key, tls)
