"""Questions that need no login: programs, checksums, the state's backend, what encrypts it, downloads, names."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterable, Iterator
from urllib.parse import urlsplit

import urllib3

from cluster.artefacts import Artefact, catalogue
from cluster.bundles import collecting
from cluster.errors import MenagerieError
from cluster.sources import missing_checksums, source_of, without_checksum
from cluster.spec import Cluster
from operations.doctor.model import Answer, Question, ok, unknown, wrong
from operations.plugins import needed, pin_of
from operations.stack import Stacks, backend_of, installed_pulumi, settings_of
from sandbox.lab import preflight
from sandbox.lab.errors import LabError
from sandbox.lab.prepare import lab_spec
from stacks.encryption import FILE, provider_of, refuse_without_passphrase
from stacks.errors import PassphraseError
from tools.build import states

GROUP = "here"
_BUILD = ".venv/bin/python -m tools pulumi"
_TIMEOUT = urllib3.Timeout(connect=5, read=10)
_DENIED = 401
_KEPT = '"$HOME/.menagerie-passphrase"'


def local_questions(cluster: Cluster) -> list[Question]:
    """Return what can be asked without a login. A lab has no account, so this is all that there is to ask about it."""

    def question(name: str, ask: Callable[[], Iterable[Answer]], calls: tuple[str, ...] = ()) -> Question:
        return Question(GROUP, name, ask, calls, cloud=False)

    common = [
        question("programs", _programs),
        question("state", lambda: _state(cluster)),
        question("passphrase", lambda: _passphrase(cluster)),
    ]
    if cluster.is_lab:
        return [*common, question("machine", lambda: _lab(cluster))]
    public = cluster.spec.control_plane.public
    return [
        *common,
        question("checksums", lambda: _checksums(cluster)),
        question("plugin", lambda: _plugin(cluster)),
        question("downloads", lambda: _downloads(cluster), ("HTTP HEAD",)),
        *([question("registry", lambda: _registry(cluster), ("HTTP GET",))] if cluster.spec.artefacts.registry else []),
        *([question("public name", lambda: _public_name(public.name), ("DNS",))] if public else []),
    ]


def _has_pulumi() -> bool:
    return installed_pulumi() is not None or any(each["program"] == "pulumi" and each["built"] for each in states())


def _programs() -> Iterator[Answer]:
    if _has_pulumi():
        yield ok("the Pulumi CLI is here")
    else:
        yield wrong("the Pulumi CLI is neither on PATH nor built; `up` builds it, for minutes", _BUILD)


def _state(cluster: Cluster) -> Iterator[Answer]:
    where = backend_of(cluster)
    if where.configured_by and not _has_pulumi():
        yield unknown(f"{where.shown} is read with the Pulumi CLI, which is not here yet", _BUILD)
        return
    by = f" ({where.configured_by})" if where.configured_by else " (a folder of this checkout)"
    if Stacks().has(cluster):
        yield ok(f"{where.shown}{by} has the stack: the cluster is built, and its own machines count as used")
    else:
        yield ok(f"{where.shown}{by} can be read, and has no stack of {cluster.name} yet")


def _passphrase(cluster: Cluster) -> Iterator[Answer]:
    try:
        provider = provider_of(settings_of(cluster), backend_of(cluster).url)
        refuse_without_passphrase(cluster, provider)
    except PassphraseError as error:
        make = f"[ -e {_KEPT} ] || (umask 077; openssl rand -base64 32 > {_KEPT})"
        yield wrong(str(error), make, f"export {FILE}={_KEPT}")
        return
    words = f"{provider.partition(':')[0]} encrypts the stack's secrets; its key is not tried" if provider else ""
    yield ok(words or ("a lab needs none" if cluster.is_lab else "a passphrase encrypts the stack's secrets"))


def _checksums(cluster: Cluster) -> Iterator[Answer]:
    lacking = without_checksum(cluster.spec)
    if lacking:
        text = f"{len(lacking)} downloads lack one, without which `up` does not start"
        yield wrong(text, collecting(cluster.name))
    elif rest := list(missing_checksums(cluster.spec)):
        yield wrong(rest[0], f"./menagerie check {cluster.name}")
    else:
        yield ok("every download has one")


def _plugin(cluster: Cluster) -> Iterator[Answer]:
    plugin = needed(cluster, os.environ)
    if plugin is None:
        yield ok("a provider is running already (PULUMI_DEBUG_PROVIDERS)")
    elif pin := pin_of(cluster, plugin):
        yield ok(f"{plugin.name} {plugin.version} has a checksum: {pin[:12]}…")
    else:
        yield wrong(f"no checksum is pinned for {plugin.name} {plugin.version}", collecting(cluster.name))


def _downloads(cluster: Cluster) -> Iterator[Answer]:
    """Ask for the head of each download from this machine. Hosts go out by their NAT gateway, which is not tried."""
    source = source_of(cluster.spec)
    artefacts = _artefacts(cluster)
    by_host: dict[str, list[Artefact]] = {}
    for artefact in artefacts:
        by_host.setdefault(urlsplit(source.url(artefact)).netloc, []).append(artefact)
    with urllib3.PoolManager(timeout=_TIMEOUT, retries=urllib3.Retry(1, redirect=5)) as http:
        for host, files in by_host.items():
            yield _host(http, host, [source.url(each) for each in files])


def _artefacts(cluster: Cluster) -> list[Artefact]:
    """Return the programs that hosts and operators download, and the provider's plugin."""
    every = catalogue(cluster.spec.kubernetes.version).values()
    plugin = needed(cluster, os.environ)
    return [each for each in every if each.name != "restic" or cluster.spec.has_backups] + ([plugin] if plugin else [])


def _host(http: urllib3.PoolManager, host: str, urls: list[str]) -> Answer:
    lacking = []
    for url in urls:
        try:
            status = http.request("HEAD", url).status
        except urllib3.exceptions.HTTPError as error:
            return unknown(f"this machine gets no answer: {_cause(error)}", f"curl -fsSI {url}", about=host)
        if status >= 400:
            lacking.append((url, status))
    if lacking:
        words = ", ".join(f"{url.rpartition('/')[2]} ({status})" for url, status in lacking)
        return wrong(
            f"{len(lacking)} of {len(urls)} files are refused: {words}", f"curl -fsSI {lacking[0][0]}", about=host
        )
    return ok(f"serves all {len(urls)} files to this machine", about=host)


def _cause(error: BaseException) -> str:
    reason = getattr(error, "reason", None)
    return type(reason if isinstance(reason, BaseException) else error).__name__


def _registry(cluster: Cluster) -> Iterator[Answer]:
    registry = cluster.spec.artefacts.registry
    url = f"https://{registry}/v2/"
    with urllib3.PoolManager(timeout=_TIMEOUT, retries=False) as http:
        try:
            status = http.request("GET", url).status
        except urllib3.exceptions.HTTPError as error:
            yield unknown(f"this machine gets no answer from {registry}: {_cause(error)}", f"curl -fsS {url}")
            return
    if status == 200 or status == _DENIED:
        yield ok(f"{registry} answers")
    else:
        yield wrong(f"{registry} answers {status}", f"curl -fsS {url}")


def _public_name(name: str) -> Iterator[Answer]:
    """Before the first `up` the name must point nowhere: its target does not exist yet."""
    try:
        addresses = sorted({str(each[4][0]) for each in socket.getaddrinfo(name, None)})
    except socket.gaierror as error:
        if error.errno in (socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME)):
            yield ok(f"{name} does not resolve yet; `up` prints the addresses that it must point to")
        else:
            yield unknown(f"{name}: the resolver does not answer: {error}", f"dig {name}")
        return
    text = (
        f"{name} resolves to {', '.join(addresses)} already; after `up` it must point to the addresses that `up` prints"
    )
    yield unknown(text, f"dig +short {name}")


def _lab(cluster: Cluster) -> Iterator[Answer]:
    try:
        preflight.check(lab_spec(cluster))
    except LabError as error:
        yield wrong(" ".join(str(error).split()), f"sudo ./menagerie up {cluster.name} --dry-run")
    except MenagerieError as error:
        yield unknown(str(error))
    else:
        yield ok("this machine can hold the lab")
