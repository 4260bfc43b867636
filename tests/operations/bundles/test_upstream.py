"""`bundle --fetch`: the lists of checksums in the forms in which projects publish them, and what differs from them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cluster import sources
from cluster.bundles import Known
from cluster.locked import LOCK_FILE
from operations.bundles import signing
from operations.bundles.needs import needed_artefacts
from operations.bundles.opened import opened
from operations.bundles.places import WebPlace
from operations.bundles.stage import ArtefactError
from operations.bundles.upstream import checksum, list_of
from tests.cli.terminal import Menagerie
from tests.operations.bundles.conftest import ImageRegistry, Sites, content, digest, horus, made

SCHEDULER = "dl.k8s.io/release/v1.36.4/bin/linux/amd64/kube-scheduler"
GITHUB = "github.com"
RUNC = f"{GITHUB}/opencontainers/runc/releases/download/v1.4.3/runc.amd64"
FLANNEL = f"{GITHUB}/flannel-io/flannel/releases/download/v0.28.4/flanneld-amd64"
RESTIC = f"{GITHUB}/restic/restic/releases/download/v0.18.1/restic_0.18.1_linux_amd64.bz2"
FORMS = {
    "dl.k8s.io/": ("{source}.sha256", "{sum}"),
    f"{GITHUB}/containerd/containerd/": ("{source}.sha256sum", "{sum}  {name}\n"),
    f"{GITHUB}/containernetworking/plugins/": ("{source}.sha256", "{sum}  {name}\n"),
    f"{GITHUB}/etcd-io/etcd/": ("{folder}/SHA256SUMS", "{zero}  etcd-v3.6.14-darwin-amd64.zip\n{sum}  {name}\n"),
    f"{GITHUB}/kubernetes-sigs/cri-tools/": ("{source}.sha256", "{sum}\n"),
    f"{GITHUB}/opencontainers/runc/": (
        "{folder}/runc.sha256sum",
        "{zero} *runc.arm64\n{sum} *{name}\n{zero} *runc.tar.xz\n",
    ),
    f"{GITHUB}/prometheus/node_exporter/": ("{folder}/sha256sums.txt", "{zero}  netbsd.tar.gz\n{sum}  {name}\n"),
    f"{GITHUB}/restic/restic/": ("{folder}/SHA256SUMS", "{zero}  restic-0.18.1.tar.gz\n{sum}  {name}\n"),
}
"""Start of sources -> where the project's list is, and its form."""


def publish(sites: Sites, source: str, sum_: str) -> None:
    """Publish a checksum as the file's project does."""
    folder, _, name = source.rpartition("/")
    words = {"source": source, "folder": folder, "name": name, "sum": sum_, "zero": "0" * 64}
    for start, (path, form) in FORMS.items():
        if source.startswith(start):
            sites.put(path.format(**words), form.format(**words).encode())
            return
    owner, repository, _, _, tag, _ = source.removeprefix(f"{GITHUB}/").split("/")
    at = f"api.github.com/repos/{owner}/{repository}/releases/tags/{tag}"
    before = sites.folder / at
    assets = json.loads(before.read_text())["assets"] if before.exists() else [{"name": "other", "digest": None}]
    assets.append({"name": name, "digest": f"sha256:{sum_}", "size": 1, "state": "uploaded"})
    sites.put(at, json.dumps({"tag_name": tag, "assets": assets}).encode())


@pytest.fixture
def published(sites: Sites, root: Path) -> Sites:
    """Download sites with the lists of all projects."""
    for source in files(root):
        publish(sites, source, digest(content(source)))
    return sites


def files(root: Path) -> list[str]:
    """Return all files of horus, with plugins for every system of operators."""
    things = needed_artefacts([horus(root)], ["linux-amd64"])
    return [thing.source for thing in things if not thing.source.rpartition("/")[2].count(":")]


def test_the_checksum_of_every_file_is_found_in_its_project_s_list(published: Sites, root: Path) -> None:
    place = WebPlace(published.url)
    assert {source: checksum(place, source) for source in files(root)} == {
        source: digest(content(source)) for source in files(root)
    }


def test_files_are_compared_with_the_projects_lists_and_the_bundle_says_so(
    menagerie: Menagerie, root: Path, published: Sites, registry: ImageRegistry
) -> None:
    ran = menagerie(*made(published, registry), "--new-key", "--fetch")
    assert (ran.code, "compared with no other list" in ran.err) == (0, False), ran.err
    with opened(root / "horus.bundle", signing.public_keys(signing.public_file(root))) as own:
        known = {entry.source: entry.known for entry in own.index.entries}
    assert set(known.values()) == {Known.PUBLISHED, Known.UPSTREAM}
    assert (known[SCHEDULER], known[RUNC]) == (Known.UPSTREAM, Known.PUBLISHED)
    assert sources.without_checksum(horus(root).spec) == ()
    before = (root / "horus.bundle").read_bytes()
    assert menagerie(*made(published, registry), "--fetch").code == 0
    assert (root / "horus.bundle").read_bytes() == before


@pytest.mark.parametrize("source", [SCHEDULER, FLANNEL, RESTIC])
def test_a_file_that_differs_from_its_project_s_list_is_refused(
    menagerie: Menagerie, root: Path, published: Sites, registry: ImageRegistry, source: str
) -> None:
    published.put(source, b"something else")
    ran = menagerie(*made(published, registry), "--new-key", "--fetch")
    assert ran.code == 1
    assert f"has SHA-256 {digest(b'something else')}, but {digest(content(source))} is expected" in ran.err
    assert not (root / "inventories" / "horus" / LOCK_FILE).exists()


def test_a_list_that_differs_from_this_checkout_or_the_lock_is_refused(
    menagerie: Menagerie, root: Path, published: Sites, registry: ImageRegistry
) -> None:
    assert menagerie(*made(published, registry), "--new-key", "--fetch").code == 0
    publish(published, RUNC, "a" * 64)
    publish(published, SCHEDULER, "b" * 64)
    ran = menagerie(*made(published, registry), "--fetch")
    assert ran.code == 1
    assert f"the project publishes SHA-256 {'a' * 64}, but this checkout has {digest(content(RUNC))}" in ran.err
    assert (
        f"the project publishes SHA-256 {'b' * 64}, but the spec or its lock has {digest(content(SCHEDULER))}"
        in ran.err
    )


@pytest.mark.parametrize(
    ("source", "text"),
    [
        (SCHEDULER, "<html>Not Found</html>"),
        (SCHEDULER, f"{'a' * 64}\n{'b' * 64}\n"),
        (SCHEDULER, "a" * 63),
        (RUNC, f"{'a' * 64}  runc.arm64\n"),
        (RUNC, f"{'a' * 64}  runc.amd64\n{'b' * 64}  runc.amd64\n"),
        (FLANNEL, "not JSON"),
        (FLANNEL, '{"assets": [{"name": "flanneld-amd64", "digest": null}]}'),
        (FLANNEL, '{"assets": [{"name": "flanneld-amd64", "digest": "sha1:abc"}]}'),
        (FLANNEL, '{"message": "API rate limit exceeded"}'),
        (FLANNEL, "[]"),
    ],
)
def test_a_list_without_one_clear_checksum_is_refused(sites: Sites, source: str, text: str) -> None:
    sites.put(list_of(source), text.encode())
    with pytest.raises(ArtefactError, match=r"has no SHA-256 of (kube-scheduler|runc.amd64|flanneld-amd64)$"):
        checksum(WebPlace(sites.url), source)


def test_a_missing_list_and_an_endless_one_are_refused(sites: Sites) -> None:
    with pytest.raises(ArtefactError, match="kube-scheduler.sha256 responds with 404"):
        checksum(WebPlace(sites.url), SCHEDULER)
    sites.put(f"{SCHEDULER}.sha256", b"a" * (5 << 20))
    with pytest.raises(ArtefactError, match="so it is no list of checksums"):
        checksum(WebPlace(sites.url), SCHEDULER)


def test_a_host_without_a_known_list_is_refused() -> None:
    with pytest.raises(ArtefactError, match="no list of checksums is known for example.org/x"):
        list_of("example.org/x")


def test_own_builds_are_not_compared_with_upstream(
    menagerie: Menagerie, root: Path, sites: Sites, registry: ImageRegistry
) -> None:
    ran = menagerie(*made(sites, registry), "--fetch", "--own-builds")
    assert (ran.code, "give one" in ran.err) == (2, True)
    ran = menagerie("bundle", "horus", "-o", "horus.bundle")
    assert (ran.code, "give --fetch to use the projects' own sites, or --mirror" in ran.err) == (2, True)
