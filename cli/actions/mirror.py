"""`mirror push` and `mirror serve`."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from cli.output import Steps, errors
from cli.views import bundles as views
from cluster.project import ROOT
from operations.bundles.opened import opened
from operations.bundles.signing import public_file, public_keys
from operations.mirrors import push as pushing
from operations.mirrors.push import MirrorError
from operations.mirrors.served import server, tls_of
from operations.mirrors.targets import target_of


def push(path: Path, words: str, public_key: Path | None, *, dry_run: bool, as_json: bool) -> None:
    """Verify a bundle, and upload what the mirror lacks."""
    target = target_of(words)
    steps = Steps(("verify", "compare" if dry_run else "upload"), quiet=as_json)
    with opened(path, public_keys(public_key or public_file(ROOT))) as bundle:
        with steps.step("verify"):
            bundle.verify(steps.detail)
        with steps.step("compare" if dry_run else "upload"):
            pushed = pushing.push(bundle, target, dry_run=dry_run, say=steps.detail)
    views.pushed(target, pushed, dry_run=dry_run, as_json=as_json)


def serve(path: Path, address: str, port: int, public_key: Path | None, pair: tuple[Path, Path] | None) -> None:
    """Verify a bundle, and serve it until interrupted. pair: certificate and key for TLS."""
    tls = tls_of(*pair) if pair else None
    steps = Steps(("verify",))
    with opened(path, public_keys(public_key or public_file(ROOT))) as bundle:
        with steps.step("verify"):
            bundle.verify(steps.detail)
        try:
            served = server(bundle, address, port, lambda line: errors.print(line, style="dim", markup=False), tls)
        except OSError as error:
            raise MirrorError(f"can't listen on {address}:{port}: {error.strerror}") from None
        with served, suppress(KeyboardInterrupt):
            views.serving(bundle.index, address, int(served.server_address[1]), certificate=pair[0] if pair else None)
            served.serve_forever()
