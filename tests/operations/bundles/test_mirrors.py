"""Mirrors that a bundle fills: a web server, a folder, a real S3 server and a real registry; only what differs is uploaded."""

from __future__ import annotations

import hashlib
import http.client
import socket
import ssl
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster import sources
from cluster.artefacts import ArtefactSource, catalogue
from cluster.bundles import Kind
from cluster.errors import RefusedError
from operations.bundles import signing
from operations.bundles.opened import OpenBundle, opened
from operations.mirrors.push import MirrorError
from operations.mirrors.served import server, tls_of
from operations.mirrors.targets import target_of
from stacks.certificates import Request, issue, new_authority, new_key
from tests.cli.terminal import Menagerie
from tests.etcd.backup_support import KEY, Buckets
from tests.operations.bundles.conftest import MULTI, ImageRegistry, Sites, content, digest, horus, made
from tests.operations.google_buckets import VARIABLE, GoogleBuckets
from tests.ports import free_port
from tests.programs import PROGRAMS, needs
from tests.waiting import until

RUNC = "github.com/opencontainers/runc/releases/download/v1.4.3/runc.amd64"


@pytest.fixture
def own(bundle: Path, root: Path) -> Iterator[OpenBundle]:
    with opened(bundle, signing.public_keys(signing.public_file(root))) as own:
        yield own


@pytest.fixture
def served(own: OpenBundle) -> Iterator[int]:
    """The port of the bundle's server."""
    made = server(own, "127.0.0.1", 0, lambda _: None)
    threading.Thread(target=made.serve_forever, daemon=True).start()
    yield made.server_port
    made.shutdown()
    made.server_close()


def got(port: int, path: str, method: str = "GET", **headers: str) -> tuple[int, bytes, http.client.HTTPMessage]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request(method, path, headers=headers)
    answer = connection.getresponse()
    data = answer.read()
    connection.close()
    return answer.status, data, answer.headers


def test_hosts_download_every_program_from_a_served_bundle(served: int, root: Path) -> None:
    spec = horus(root).spec
    at = ArtefactSource(f"http://127.0.0.1:{served}", sources.source_of(spec).sha256)
    for artefact in catalogue(spec.kubernetes.version).values():
        if artefact.name != "kubectl":
            status, data, _ = got(served, at.url(artefact).partition(str(served))[2])
            assert (status, digest(data)) == (200, at.checksum(artefact))


@pytest.mark.parametrize(
    ("asked", "status", "part"),
    [
        ("bytes=0-9", 206, slice(0, 10)),
        ("bytes=10-", 206, slice(10, None)),
        ("bytes=-7", 206, slice(-7, None)),
        ("bytes=0-999999", 200, slice(None)),
        ("lines=1-2", 200, slice(None)),
        ("bytes=999999-", 416, slice(0, 0)),
        ("bytes=-0", 416, slice(0, 0)),
        ("bytes=9-3", 416, slice(0, 0)),
    ],
)
def test_a_served_file_has_ranges(served: int, asked: str, status: int, part: slice) -> None:
    answer = got(served, f"/{RUNC}", Range=asked)
    assert answer[:2] == (status, content(RUNC)[part])
    if status == 206:
        assert answer[2]["Content-Range"].endswith(f"/{len(content(RUNC))}")


@pytest.mark.parametrize(
    "path",
    ["/", "/bundle.json", f"/{RUNC}/", f"/x/../{RUNC}", "//etc/passwd", "/../../etc/passwd", "/v2/x/blobs/sha256:0"],
)
def test_nothing_else_is_served(served: int, path: str) -> None:
    assert got(served, path)[:2] == (404, b"")
    assert got(served, path, "HEAD")[0] == 404
    assert got(served, f"/{RUNC}", "PUT")[0] == 501


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path, Path]:
    """A certificate of 127.0.0.1, its key, and the authority that signed it."""
    authority = new_authority("mirrors")
    signed = issue(authority, Request("mirror", addresses=("127.0.0.1",), usages=("server",)))
    texts = {"mirror.crt": signed.certificate, "mirror.key": signed.private_key, "ca.crt": authority.certificate}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    certificate, key, ca = (tmp_path / name for name in texts)
    return certificate, key, ca


def test_with_tls_only_clients_that_trust_the_authority_read_and_a_silent_one_delays_nobody(
    own: OpenBundle, pair: tuple[Path, Path, Path]
) -> None:
    certificate, key, ca = pair
    said: list[str] = []
    made = server(own, "127.0.0.1", 0, said.append, tls_of(certificate, key))
    threading.Thread(target=made.serve_forever, daemon=True).start()
    try:
        with socket.create_connection(("127.0.0.1", made.server_port)):
            trusting = ssl.create_default_context(cafile=str(ca))
            at = f"https://127.0.0.1:{made.server_port}/{RUNC}"
            with urllib.request.urlopen(at, timeout=10, context=trusting) as answer:
                assert hashlib.sha256(answer.read()).hexdigest() == answer.headers["ETag"].strip('"')
            with pytest.raises(urllib.error.URLError, match="CERTIFICATE_VERIFY_FAILED"):
                urllib.request.urlopen(at, timeout=10)
        until(lambda: any("UNKNOWN_CA" in line for line in said), lambda: f"{said}", 10, 0.05)
    finally:
        made.shutdown()
        made.server_close()


def test_a_certificate_without_its_own_key_is_refused_with_a_way_to_make_a_pair(
    pair: tuple[Path, Path, Path], tmp_path: Path
) -> None:
    certificate, _, _ = pair
    other = tmp_path / "other.key"
    other.write_text(new_key())
    for key in (other, tmp_path / "absent.key", certificate):
        with pytest.raises(
            MirrorError, match=f"{certificate} and {key} are not a certificate and its key.*openssl req"
        ):
            tls_of(certificate, key)


def test_half_a_pair_is_refused_before_the_bundle_is_read(menagerie: Menagerie) -> None:
    ran = menagerie("mirror", "serve", "absent.bundle", "--cert", "mirror.crt")
    assert (ran.code, "--cert and --key together" in ran.err) == (2, True)


def test_a_served_bundle_is_a_registry_from_which_images_are_pulled(
    served: int,
    own: OpenBundle,
    menagerie: Menagerie,
    root: Path,
    sites: Sites,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The client is crane, through another bundle that is made from the first one."""
    monkeypatch.setenv("MENAGERIE_CACHE", str(tmp_path / "another-cache"))
    at = f"127.0.0.1:{served}"
    ran = menagerie(
        "bundle", "horus", "--mirror", f"http://{at}", "--registry", at, "--secret-key", "bundle.key", "-o", "two"
    )
    assert ran.code == 0, ran.err
    with opened(root / "two", signing.public_keys(signing.public_file(root))) as two:
        two.verify()
        assert two.index.sizes == own.index.sizes
    assert sites.asked == []


def sums(folder: Path) -> dict[str, str]:
    """Return the files of a folder with their checksums."""
    return {
        str(path.relative_to(folder)): digest(path.read_bytes())
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.suffix != ".sha256"
    }


def test_a_folder_gets_what_it_lacks_in_upstream_s_layout(
    menagerie: Menagerie, bundle: Path, own: OpenBundle, root: Path
) -> None:
    push = ("mirror", "push", str(bundle), "mirror")
    dry = menagerie(*push, "--dry-run", "--json").json
    assert (len(dry["uploaded"]), dry["made"], (root / "mirror" / RUNC).exists()) == (
        len(dry["uploaded"]),
        False,
        False,
    )
    assert (dry["made"], list((root / "mirror").rglob("*"))) == (False, [])
    first = menagerie(*push, "--json").json
    files = {entry.source: entry.sha256 for entry in own.index.entries if entry.kind is not Kind.IMAGE}
    assert dry["uploaded"] == first["uploaded"]
    assert (sorted(first["uploaded"]), first["same"], sums(root / "mirror")) == (sorted(files), [], files)
    assert (root / "mirror" / f"{RUNC}.sha256").read_text() == f"{files[RUNC]}  runc.amd64\n"
    assert len(first["other"]) == len(own.index.entries) - len(files)
    again = menagerie(*push, "--json").json
    assert (again["uploaded"], sorted(again["same"])) == ([], sorted(files))


def test_an_interrupted_push_goes_on_where_it_stopped(menagerie: Menagerie, bundle: Path, root: Path) -> None:
    push = ("mirror", "push", str(bundle), "mirror")
    assert menagerie(*push).code == 0
    (root / "mirror" / f"{RUNC}.sha256").unlink()  # as after the file's upload, and before its checksum's
    other = next(path for path in (root / "mirror").rglob("kube-scheduler"))
    other.write_bytes(b"half")
    ran = menagerie(*push, "--json").json
    assert sorted(ran["uploaded"]) == sorted([RUNC, str(other.relative_to(root / "mirror"))])
    assert other.read_bytes() == content(str(other.relative_to(root / "mirror")))


def changed(menagerie: Menagerie, sites: Sites, registry: ImageRegistry) -> None:
    """Make a second bundle, with another runc."""
    sites.put(RUNC, b"our runc")
    ran = menagerie(*made(sites, registry), "--own-builds")
    assert ran.code == 0, ran.err


@needs(("versitygw",))
def test_a_second_bundle_with_one_changed_program_uploads_only_that_to_a_bucket(
    menagerie: Menagerie,
    bundle: Path,
    sites: Sites,
    registry: ImageRegistry,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    buckets = Buckets(PROGRAMS["versitygw"], tmp_path)
    for name, value in {**KEY, "AWS_ENDPOINT_URL": buckets.url, "AWS_REGION": "us-east-1"}.items():
        monkeypatch.setenv(name, value)
    push = ("mirror", "push", str(bundle), "s3://programs/up/stream", "--json")
    try:
        buckets.start("programs")
        first = menagerie(*push)
        assert first.code == 0, first.err
        stored = tmp_path / "data" / "programs" / "up" / "stream"
        assert sorted(sums(stored)) == sorted(first.json["uploaded"])
        changed(menagerie, sites, registry)
        second = menagerie(*push).json
        assert (second["uploaded"], len(second["same"])) == ([RUNC], len(first.json["uploaded"]) - 1)
        assert (stored / RUNC).read_bytes() == b"our runc"
    finally:
        buckets.stop()
    ran = menagerie("mirror", "push", str(bundle), "s3://programs")
    assert (ran.code, "s3://programs doesn't take files" in ran.err) == (1, True)


@needs(("fake-gcs-server",))
def test_a_bucket_of_google_cloud_gets_what_it_lacks(
    menagerie: Menagerie, bundle: Path, own: OpenBundle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    buckets = GoogleBuckets(PROGRAMS["fake-gcs-server"], tmp_path / "gcs")
    buckets.start("programs")
    monkeypatch.setenv(VARIABLE, buckets.host)
    push = ("mirror", "push", str(bundle), "gs://programs/up/stream", "--json")
    files = {entry.source: entry.sha256 for entry in own.index.entries if entry.kind in (Kind.PROGRAM, Kind.PLUGIN)}
    try:
        dry = menagerie(*push, "--dry-run")
        assert dry.code == 0, dry.err
        first = menagerie(*push)
        assert first.code == 0, first.err
        assert sorted(dry.json["uploaded"]) == sorted(first.json["uploaded"]) == sorted(files)
        assert sums(tmp_path / "gcs" / "programs" / "up" / "stream") == files
        buckets.delete("programs", f"up/stream/{RUNC}.sha256")
        assert menagerie(*push).json["uploaded"] == [RUNC]
        assert menagerie(*push).json["uploaded"] == []
        missing = menagerie("mirror", "push", str(bundle), "gs://nowhere")
        assert (missing.code, "gs://nowhere doesn't take files" in missing.err) == (1, True)
    finally:
        buckets.stop()


def test_a_registry_gets_images_with_the_same_digests_and_only_new_ones(
    menagerie: Menagerie, bundle: Path, own: OpenBundle, registry: ImageRegistry
) -> None:
    push = ("mirror", "push", str(bundle), f"registry://{registry.at}/copies", "--json")
    images = {entry.source: entry.sha256 for entry in own.index.entries if entry.kind is Kind.IMAGE}
    first = menagerie(*push)
    assert first.code == 0, first.err
    assert sorted(first.json["uploaded"]) == sorted(images)
    port = int(registry.at.rpartition(":")[2])
    for image, sha256 in images.items():
        repository, _, tag = image.partition("/")[2].rpartition(":")
        accepted = {"Accept": "application/vnd.oci.image.index.v1+json, application/vnd.oci.image.manifest.v1+json"}
        status, data, _ = got(port, f"/v2/copies/{repository}/manifests/{tag}", **accepted)
        assert (status, digest(data)) == (200, sha256), image
    assert MULTI in images
    registry.put(f"x/copies/{'/'.join(MULTI.split('/')[1:])}", registry.image("somebody else's"))
    assert menagerie(*push).json["uploaded"] == [MULTI]


def test_a_registry_that_does_not_answer_is_an_error_of_the_dry_run_too(menagerie: Menagerie, bundle: Path) -> None:
    ran = menagerie("mirror", "push", str(bundle), "registry://127.0.0.1:1", "--dry-run")
    assert (ran.code, "127.0.0.1:1 doesn't take images" in ran.err) == (1, True)


@pytest.mark.parametrize(
    ("words", "kind", "name", "prefix"),
    [
        ("s3://b", "s3", "b", ""),
        ("s3://b/a/path/", "s3", "b", "a/path"),
        ("gs://b/p", "gcs", "b", "p"),
        ("azblob://account/c", "azure", "c", ""),
        ("azblob://account/c/p", "azure", "c", "p"),
    ],
)
def test_a_bucket_of_each_cloud_is_named_by_its_url(words: str, kind: str, name: str, prefix: str) -> None:
    target = target_of(words, {})
    assert target.bucket is not None
    assert (target.bucket.kind, target.bucket.name, target.prefix) == (kind, name, prefix)
    assert target.bucket.account == ("account" if kind == "azure" else "")


@pytest.mark.parametrize(
    "words", ["ftp://x", "s3://", "azblob://account", "registry://", "registry://u:p@host", "https://x/y"]
)
def test_another_target_is_refused_with_the_known_forms(words: str) -> None:
    with pytest.raises(RefusedError, match=r"is no mirror; name a folder, s3://BUCKET"):
        target_of(words, {})


def test_a_program_changed_in_the_cache_is_fetched_again(
    menagerie: Menagerie, bundle: Path, root: Path, sites: Sites, registry: ImageRegistry, tmp_path: Path
) -> None:
    assert menagerie(*made(sites, registry)).code == 0
    staged = tmp_path / "cache" / "bundles" / "blobs" / "sha256" / digest(content(RUNC))
    staged.write_bytes(b"flipped")
    sites.asked.clear()
    assert menagerie(*made(sites, registry)).code == 0
    assert sites.asked == [f"/{RUNC}"]


@pytest.mark.parametrize(
    ("words", "code", "why"),
    [
        (
            ("push", "horus.bundle", "mirror", "--public-key", "none.pub"),
            2,
            "the public keys whose bundles are accepted",
        ),
        (
            ("push", "horus.bundle", "mirror", "--public-key", "inventories/horus/cluster.yaml"),
            2,
            "public keys of minisign",
        ),
        (("push", "none.bundle", "mirror"), 2, "none.bundle can't be read: No such file"),
        (("push", "horus.bundle", "ftp://mirror"), 2, "'ftp://mirror' is no mirror; name a folder"),
        (("push", "horus.bundle", "horus.bundle"), 1, "horus.bundle doesn't take files"),
        (("serve", "horus.bundle", "--listen", "8080"), 2, "isn't ADDRESS:PORT"),
        (("serve", "horus.bundle", "--listen", "192.0.2.1:8080"), 1, "can't listen on 192.0.2.1:8080"),
    ],
)
def test_what_can_not_work_is_refused_with_the_reason(
    menagerie: Menagerie, bundle: Path, words: tuple[str, ...], code: int, why: str
) -> None:
    ran = menagerie("mirror", *words)
    assert (ran.code, why in " ".join(ran.err.split())) == (code, True), ran.err
    assert bundle.exists()


def test_serve_prints_what_to_write_into_specs_and_ends_with_an_interrupt(
    menagerie: Menagerie, bundle: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("operations.mirrors.served._Server.serve_forever", interrupted)
    port = free_port()
    ran = menagerie("mirror", "serve", str(bundle), "--listen", f"127.0.0.1:{port}")
    assert (ran.code, "verify" in ran.err) == (0, True)
    assert f"artefacts: {{mirror: 'http://127.0.0.1:{port}', registry: '127.0.0.1:{port}'}}" in ran.out
