"""Bundles of a cluster: what is in them, the lock that they write, and that no changed byte is ever used."""

from __future__ import annotations

import io
import json
import re
import shutil
import tarfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import minisign
import pytest
import yaml
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from cluster import images, sources
from cluster.bundles import BundleError, Index, Kind, Known
from cluster.errors import RefusedError
from cluster.load import load_cluster
from cluster.locked import LOCK_FILE, Lock, text
from cluster.plugins import this_system
from cluster.project import ROOT
from operations.bundles import signing
from operations.bundles.needs import needed_artefacts
from operations.bundles.opened import opened
from operations.plugins import pin_of, plugin_of
from tests.cli.terminal import Menagerie
from tests.operations.bundles.conftest import MULTI, ImageRegistry, Sites, content, digest, horus, made

SCHEDULER = "dl.k8s.io/release/v1.36.4/bin/linux/amd64/kube-scheduler"


def keys(root: Path) -> signing.PublicKeys:
    return signing.public_keys(signing.public_file(root))


def index_of(bundle: Path, root: Path) -> Index:
    with opened(bundle, keys(root)) as own:
        return own.index


def test_a_bundle_has_everything_that_the_cluster_downloads_and_verifies(bundle: Path, root: Path) -> None:
    with opened(bundle, keys(root)) as own:
        own.verify()
        entries = {entry.source: entry for entry in own.index.entries}
        assert set(entries) == {thing.source for thing in needed_artefacts([horus(root)], [this_system()])}
        assert own.read(entries[SCHEDULER].sha256) == content(SCHEDULER)
        # The index, two manifests, and a configuration and a layer of each.
        assert len(set(entries[MULTI].blobs)) == 1 + 2 + 2 * 2
        assert {entry.clusters for entry in own.index.entries} == {("horus",)}


def test_nobody_writes_a_checksum_by_hand_after_it(menagerie: Menagerie, bundle: Path, root: Path) -> None:
    cluster = horus(root)
    plugin = plugin_of(cluster.spec.control_plane.cloud, this_system())
    assert plugin is not None
    assert (sources.without_checksum(cluster.spec), pin_of(cluster, plugin)) == ((), digest(content(plugin.source)))
    assert "lacks checksums" not in menagerie("check", "horus").out
    (root / "inventories" / "horus" / LOCK_FILE).unlink()
    ran = menagerie("check", "horus")
    assert "./menagerie bundle horus --fetch" in ran.out
    assert SCHEDULER in ran.out


def test_the_lock_is_small_and_the_same_bundle_has_the_same_bytes(
    menagerie: Menagerie, bundle: Path, root: Path, sites: Sites, registry: ImageRegistry
) -> None:
    lock = root / "inventories" / "horus" / LOCK_FILE
    assert menagerie(*made(sites, registry)).code == 0  # now the lock has the checksums, too
    before, asked = (bundle.read_bytes(), lock.read_bytes()), list(sites.asked)
    assert yaml.safe_load(lock.read_text())["sha256"][SCHEDULER] == digest(content(SCHEDULER))
    assert len(lock.read_bytes()) < 8000
    assert menagerie(*made(sites, registry)).code == 0
    assert (bundle.read_bytes(), lock.read_bytes()) == before
    assert sites.asked == asked  # everything is in the cache, by its checksum


def test_one_flipped_byte_is_refused_with_the_name_of_its_file(bundle: Path, root: Path, menagerie: Menagerie) -> None:
    data = bytearray(bundle.read_bytes())
    at = data.index(content(SCHEDULER))
    data[at + 3] ^= 1
    bundle.write_bytes(data)
    ran = menagerie("mirror", "push", str(bundle), str(root / "mirror"))
    assert ran.code == 2
    assert f"damaged or was changed: kube-scheduler 1.36.4 ({SCHEDULER}) has SHA-256" in ran.err
    assert not (root / "mirror").exists()


@pytest.mark.parametrize("member", ["bundle.json", "bundle.json.minisig", "sbom.cdx.json"])
def test_a_flipped_byte_in_the_list_its_signature_or_the_materials_is_refused(
    bundle: Path, root: Path, member: str
) -> None:
    with tarfile.open(bundle) as archive:
        entry = archive.getmember(member)
    data = bytearray(bundle.read_bytes())
    data[entry.offset_data + entry.size // 2] ^= 1
    bundle.write_bytes(data)
    reasons = r"isn't signed by a key|minisign's format|its bill of materials has SHA-256"
    with pytest.raises(BundleError, match=reasons), opened(bundle, keys(root)) as own:
        own.verify()


def test_a_bundle_of_another_key_is_refused(bundle: Path, root: Path) -> None:
    signing.public_file(root).write_bytes(bytes(minisign.KeyPair.generate().public_key))
    with pytest.raises(BundleError, match="isn't signed by a key of"), opened(bundle, keys(root)):
        pass


def repacked(bundle: Path, *, drop: str = "", add: tarfile.TarInfo | None = None) -> None:
    """Write the bundle's members again, without one or with one more."""
    fresh = bundle.with_suffix(".new")
    with tarfile.open(bundle) as old, tarfile.open(fresh, "w") as new:
        for member in old:
            if member.name != drop:
                new.addfile(member, old.extractfile(member))
        if add:
            new.addfile(add)
    shutil.move(fresh, bundle)


def test_a_bundle_without_one_of_its_files_is_refused_with_its_name(bundle: Path, root: Path) -> None:
    repacked(bundle, drop=f"blobs/sha256/{digest(content(SCHEDULER))}")
    with pytest.raises(BundleError, match="isn't complete: it lacks kube-scheduler"), opened(bundle, keys(root)):
        pass


def signed_again(bundle: Path, root: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change the list, and sign it with the fleet's own key."""
    with tarfile.open(bundle) as old:
        members = {member.name: content.read() for member in old if (content := old.extractfile(member))}
    listed = json.loads(members["bundle.json"])
    change(listed)
    members["bundle.json"] = json.dumps(listed).encode()
    key = signing.secret_key(root / "bundle.key", str)
    members["bundle.json.minisig"] = signing.sign(members["bundle.json"], key, "")
    with tarfile.open(bundle, "w") as new:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            new.addfile(info, io.BytesIO(data))


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda listed: listed.update(version=2), "has version 2, but this checkout reads at most version 1"),
        (lambda listed: listed.update(later="field"), ""),
        (lambda listed: listed["entries"][0].update(source="../outside"), "'../outside' isn't host/path"),
        (lambda listed: listed["entries"][0].update(source="host/../../outside"), "isn't host/path"),
        (lambda listed: listed["entries"][0].update(source="/etc/passwd"), "isn't host/path"),
        (lambda listed: listed["entries"][0].update(sha256="abc"), "can't be read"),
        (lambda listed: listed["entries"][0].update(sha256="0" * 64), "has no size"),
        (lambda listed: listed["sizes"].update({"0" * 64: 1}), "belongs to no entry"),
        (lambda listed: listed.pop("sizes"), "can't be read"),
    ],
)
def test_a_signed_list_that_is_newer_or_leads_elsewhere_is_refused(
    bundle: Path, root: Path, change: Callable[[dict[str, Any]], object], why: str
) -> None:
    signed_again(bundle, root, change)
    if not why:
        assert index_of(bundle, root).entries
        return
    with pytest.raises(RefusedError, match=re.escape(why)):
        index_of(bundle, root)


def link(name: str, target: str) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = tarfile.SYMTYPE, target
    return info


@pytest.mark.parametrize("name", ["../outside", "/etc/passwd", f"blobs/sha256/{'0' * 64}", "blobs/sha256/../../x"])
def test_nothing_that_the_signed_list_lacks_is_accepted(bundle: Path, root: Path, name: str) -> None:
    for member in (tarfile.TarInfo(name), link(name, "/etc/passwd")):
        whole = bundle.read_bytes()
        repacked(bundle, add=member)
        refused = pytest.raises(BundleError, match="has a member that its signed list doesn't have so")
        with refused, opened(bundle, keys(root)):
            pass
        bundle.write_bytes(whole)


@pytest.mark.parametrize("data", [b"", b"not a tar", b"\0" * 20_000])
def test_another_file_is_no_bundle_and_is_never_overwritten_by_one(
    bundle: Path, root: Path, menagerie: Menagerie, sites: Sites, registry: ImageRegistry, data: bytes
) -> None:
    bundle.write_bytes(data)
    with pytest.raises(BundleError, match="is no bundle"), opened(bundle, keys(root)):
        pass
    ran = menagerie(*made(sites, registry))
    assert (ran.code, "isn't a bundle, so it wasn't changed" in ran.err) == (2, True)
    assert bundle.read_bytes() == data


def test_a_file_that_differs_from_its_checksum_is_refused(
    menagerie: Menagerie, root: Path, sites: Sites, registry: ImageRegistry
) -> None:
    runc = next(source for source in sources.published() if source.endswith("runc.amd64"))
    sites.put(runc, b"something else")
    (sites.folder / SCHEDULER).unlink()
    ran = menagerie(*made(sites, registry), "--new-key")
    assert ran.code == 1
    assert f"{digest(b'something else')}, but {sources.published()[runc]} is expected" in ran.err
    assert f"{SCHEDULER} responds with 404" in ran.err
    assert not (root / "horus.bundle").exists()
    assert not (root / "inventories" / "horus" / LOCK_FILE).exists()


def test_own_builds_are_listed_as_such_and_check_warns_of_each(
    menagerie: Menagerie, root: Path, sites: Sites, registry: ImageRegistry
) -> None:
    runc = next(source for source in sources.published() if source.endswith("runc.amd64"))
    sites.put(runc, b"our runc")
    assert menagerie(*made(sites, registry), "--new-key", "--own-builds").code == 0
    lock = yaml.safe_load((root / "inventories" / "horus" / LOCK_FILE).read_text())
    assert lock["own_builds"][runc] == digest(b"our runc")
    assert set(lock["sha256"]) == {*sources.published(), *images.published()} & set(lock["sha256"])
    assert f"hosts run your own build of {runc}" in menagerie("check", "horus").err
    before = (root / "horus.bundle").read_bytes(), (root / "inventories" / "horus" / LOCK_FILE).read_bytes()
    assert menagerie(*made(sites, registry), "--own-builds").code == 0
    assert ((root / "horus.bundle").read_bytes(), (root / "inventories" / "horus" / LOCK_FILE).read_bytes()) == before
    assert menagerie(*made(sites, registry)).code == 0  # the lock declares them now


def test_the_bill_of_materials_is_valid_and_has_every_entry(bundle: Path, root: Path) -> None:
    with opened(bundle, keys(root)) as own:
        text = own.read(own.index.materials).decode()
        entries = own.index.entries
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None
    components = {each["bom-ref"]: each for each in json.loads(text)["components"]}
    assert {source: each["hashes"][0]["content"] for source, each in components.items()} == {
        entry.source: entry.sha256 for entry in entries
    }
    assert components[SCHEDULER]["purl"] == "pkg:github/kubernetes/kubernetes@v1.36.4#kube-scheduler"


def test_a_secret_key_opens_with_its_password_only_and_is_its_owners(
    menagerie: Menagerie, root: Path, sites: Sites, registry: ImageRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MENAGERIE_BUNDLE_PASSWORD", "a password")
    assert menagerie(*made(sites, registry), "--new-key").code == 0
    assert (root / "bundle.key").stat().st_mode & 0o777 == 0o600
    with opened(root / "horus.bundle", keys(root)) as own:
        own.verify()
    monkeypatch.setenv("MENAGERIE_BUNDLE_PASSWORD", "another")
    ran = menagerie(*made(sites, registry))
    assert (ran.code, "the password doesn't open bundle.key" in ran.err) == (2, True)
    monkeypatch.delenv("MENAGERIE_BUNDLE_PASSWORD")
    assert "there is no terminal to ask for a password on" in menagerie(*made(sites, registry)).err


def test_without_a_key_the_way_out_is_named_and_a_key_is_never_overwritten(
    menagerie: Menagerie, root: Path, sites: Sites, registry: ImageRegistry
) -> None:
    assert "To create a key there, run the same command with --new-key" in menagerie(*made(sites, registry)).err
    (root / "bundle.key").write_text("mine")
    ran = menagerie(*made(sites, registry), "--new-key")
    assert (ran.code, "bundle.key exists and was not changed" in ran.err) == (2, True)
    assert (root / "bundle.key").read_text() == "mine"


def test_a_dry_run_asks_no_network_and_writes_nothing(
    menagerie: Menagerie, root: Path, sites: Sites, registry: ImageRegistry
) -> None:
    ran = menagerie(*made(sites, registry), "--dry-run", "--json")
    assert ran.code == 0
    pins = {entry["source"]: entry["sha256"] for entry in ran.json["entries"]}
    assert pins[SCHEDULER] is None
    assert {source for source, pin in pins.items() if pin} == {*sources.published(), *images.published()} & set(pins)
    assert (sites.asked, [path.name for path in root.iterdir()]) == ([], ["inventories"])


def test_two_clusters_share_what_both_need(
    menagerie: Menagerie, root: Path, sites: Sites, registry: ImageRegistry
) -> None:
    other = root / "inventories" / "heron"
    other.mkdir()
    text = (root / "inventories" / "horus" / "cluster.yaml").read_text().replace("name: horus", "name: heron")
    (other / "cluster.yaml").write_text(
        text.replace("10.128.", "10.192.").replace("10.144.", "10.208.").replace("10.145.", "10.209.")
    )
    words = made(sites, registry, "--new-key")
    ran = menagerie("bundle", "heron", *words[1:])
    assert ran.code == 0, ran.err
    entries = {entry.source: entry.clusters for entry in index_of(root / "horus.bundle", root).entries}
    assert set(entries.values()) == {("heron", "horus")}
    assert load_cluster(other / "cluster.yaml").spec.artefacts.sha256[SCHEDULER] == digest(content(SCHEDULER))


def test_only_a_cluster_with_ceph_has_rooks_manifests_and_images() -> None:
    paths = ("examples/jaguar/cluster.yaml", "tests/specs/valid-ceph.yaml")
    without, has = (
        [each for each in needed_artefacts([load_cluster(ROOT / path)], ()) if "rook/" in each.source] for path in paths
    )
    assert without == []
    assert Counter(each.kind for each in has) == {Kind.MANIFEST: 4, Kind.IMAGE: 1}
    assert {each.known for each in has if each.kind is Kind.MANIFEST} == {Known.PUBLISHED}


@pytest.mark.parametrize("name", ["horus", "ibis", "jaguar"])
def test_with_the_lock_of_a_bundle_an_example_lacks_no_checksum(name: str, tmp_path: Path) -> None:
    """What `up` then lacks are credentials and a backend."""
    folder = shutil.copytree(ROOT / "examples" / name, tmp_path / name)
    cluster = load_cluster(folder / "cluster.yaml")
    things = needed_artefacts([cluster], [this_system()])
    assert list(sources.missing_checksums(cluster.spec)) != []
    (folder / LOCK_FILE).write_text(text(Lock(sha256={thing.source: thing.pin or "1" * 64 for thing in things})))
    locked = load_cluster(folder / "cluster.yaml")
    plugin = plugin_of(locked.spec.control_plane.cloud, this_system())
    assert list(sources.missing_checksums(locked.spec)) == []
    assert plugin is not None
    assert pin_of(locked, plugin)
