"""`bundle`: asks for a password, collects, and writes."""

from __future__ import annotations

import getpass
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cli.output import Steps
from cli.views import bundles as views
from cluster.bundles import BundleError
from cluster.fields import unknown
from cluster.locked import LOCK_FILE
from cluster.plugins import SYSTEMS, this_system
from cluster.project import ROOT
from cluster.provisioning import Release
from cluster.spec import Cluster
from operations.bundles import lab, make, pack, signing
from operations.bundles.debian import collect
from operations.bundles.debian.host_packages import host_packages
from operations.bundles.images import Registry
from operations.bundles.needs import needed_artefacts
from operations.bundles.places import WebPlace, place_of
from operations.bundles.stage import Stage


@dataclass(frozen=True)
class How:
    """The options. place: folder or URL, "" for upstream's sites. systems: of operators, () for this machine's.

    debian: with Debian packages of machines at sites. site_releases: of machines at sites without provisioning.
    """

    output: Path
    place: str
    registry: str
    systems: tuple[str, ...]
    secret_key: Path
    fetch: bool
    own_builds: bool
    new_key: bool
    debian: bool
    site_releases: tuple[str, ...] = ()


def bundle(clusters: Sequence[Cluster], folders: Mapping[str, Path], how: How, *, dry_run: bool, as_json: bool) -> None:
    """Write a bundle of the clusters, and a lock into the folder of each."""
    for lines in (unknown("system", how.systems, SYSTEMS), unknown("release", how.site_releases, list(Release))):
        if lines:
            raise BundleError(lines)
    things = needed_artefacts(clusters, how.systems or (this_system(),))
    of_labs = lab.needed_artefacts([cluster for cluster in clusters if cluster.is_lab])
    of_hosts = host_packages(clusters, [Release(each) for each in how.site_releases]) if how.debian else ()
    locks = {cluster.name: folders[cluster.name] / LOCK_FILE for cluster in clusters if not cluster.is_lab}
    pack.refuse_foreign(how.output)
    if dry_run:
        views.would_bundle(how.output, (*things, *of_labs), of_hosts, locks, as_json=as_json)
        return
    if how.new_key:
        signing.new_key(how.secret_key, signing.public_file(ROOT), _ask)
    key = signing.secret_key(how.secret_key, _ask)
    stage, steps = Stage(), Steps(("collect", "write"), quiet=as_json)
    with steps.step("collect"):
        files = place_of(how.place) if how.place else WebPlace()
        sources = make.Sources(files, Registry(how.registry, steps.detail), fetch=how.fetch, own=how.own_builds)
        entries = make.collect(things, sources, stage, steps.detail)
        entries += lab.collect(of_labs, stage, steps.detail)
        entries += collect.collect(of_hosts, files, stage, steps.detail)
    with steps.step("write"):
        index = make.write(how.output, entries, stage, key, locks)
    views.bundled(how.output, index, locks, as_json=as_json)


def _ask(question: str) -> str:
    if not sys.stdin.isatty():
        raise BundleError(f"there is no terminal to ask for a password on; set {signing.PASSWORD}")
    return getpass.getpass(question)
