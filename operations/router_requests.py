"""Keys of edge routers, generated on the routers, and certificate requests for an authority to sign."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from clients.remote.executor import Done, Executor
from clients.timeouts import HOST_COMMAND_S
from cluster.errors import RefusedError
from cluster.spec import Cluster
from cluster.writing import bears, write
from operations.router_certificates import folder_of, of_routers

KEY_BITS = 3072
""""Supported cryptographic algorithms" of AWS Private CA: RSA and NIST's curves. No page says which ones a tunnel accepts."""
_REQUEST = re.compile(r"-----BEGIN CERTIFICATE REQUEST-----\n.+?\n-----END CERTIFICATE REQUEST-----\n", re.DOTALL)
_LONGEST_NAME = 64
"""RFC 5280, ub-common-name."""
_SCRIPT = """\
set -eu
umask 077
mkdir -p /etc/swanctl/private
key=/etc/swanctl/private/$1
if ! test -s "$key"; then
  openssl genpkey -quiet -algorithm RSA -pkeyopt "rsa_keygen_bits:$2" -out "$key.new"
  mv "$key.new" "$key"
fi
exec openssl req -new -sha256 -key "$key" -subj "/CN=$3"
"""
_LOOK = "test -s /etc/swanctl/private/$1 && echo kept || echo new"


@dataclass(frozen=True)
class Requested:
    """The result for one router. file: its request; None if there is none, and `why` is the reason. In a dry run, `file` is
    where the request would be, and `why` is which key it would use."""

    router: str
    file: Path | None
    why: str = ""


def request(
    cluster: Cluster, executor: Executor, only: Collection[str], *, dry_run: bool = False
) -> Iterator[Requested]:
    """Get a certificate request from every router of ours with a certificate; a router without a key generates one.

    only: routers as ``<site>/<router>``, empty for all. The request is written next to the certificate, as ``<file>.csr``.
    dry_run: only check whether a router has a key, and report it in `why`.
    """
    routers = {
        f"{site}/{name}": (f"{site}-{name}", settings)
        for site, name, settings in of_routers(cluster)
        if (vpn := cluster.spec.sites[site].vpn) and vpn.routers[name].host and (not only or f"{site}/{name}" in only)
    }
    if not routers:
        raise RefusedError(
            f"{cluster.name} has no edge router with a host and a certificate, or none with these names",
            code="no-router",
        )
    key = f"menagerie-{cluster.name}.pem"
    for router, (machine, settings) in routers.items():
        file = folder_of(cluster) / f"{settings.file}.csr"
        if dry_run:
            yield _dry_run_result(
                router, file, executor.start(machine, ["sh", "-c", _LOOK, "look", key]).wait(HOST_COMMAND_S)
            )
            continue
        words = [
            "sh",
            "-c",
            _SCRIPT,
            "request",
            key,
            str(KEY_BITS),
            machine[:_LONGEST_NAME],
        ]
        done = executor.start(machine, words).wait(HOST_COMMAND_S)
        match = _REQUEST.search(done.text)
        if done.code or not match:
            yield Requested(router, None, done.reason)
            continue
        file.parent.mkdir(parents=True, exist_ok=True)
        write(file, match[0], "a certificate request", bears("-----BEGIN CERTIFICATE REQUEST-----"))
        yield Requested(router, file)


def _dry_run_result(router: str, file: Path, done: Done) -> Requested:
    if done.code:
        return Requested(router, None, done.reason)
    return Requested(router, file, "its existing key" if "kept" in done.text.split() else "a new key")
