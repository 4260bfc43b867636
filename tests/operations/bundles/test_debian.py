"""Debian packages of a bundle: chosen and verified by the real apt from a small archive, and served to the real apt."""

from __future__ import annotations

import subprocess
import threading
from pathlib import Path

import minisign
import pytest

from cluster.bundles import Entry, Index, Kind, Known
from cluster.load import load_cluster
from cluster.provisioning import Release
from cluster.spec import Cluster
from operations.bundles import make, pack, signing
from operations.bundles.debian import archive as debian
from operations.bundles.debian.archive import IMAGES, MAIN, NETBOOT, SECURITY
from operations.bundles.debian.collect import collect
from operations.bundles.debian.host_packages import HostPackages, host_packages
from operations.bundles.materials import purl
from operations.bundles.opened import opened
from operations.bundles.places import FolderPlace
from operations.bundles.stage import ArtefactError, Stage
from operations.mirrors.push import push
from operations.mirrors.served import server
from operations.mirrors.targets import target_of
from tests.cli.terminal import Menagerie
from tests.operations.bundles import archive
from tests.operations.bundles.conftest import ROOT, content, digest

NETHACK = f"{MAIN}/pool/main/n/nethack/nethack_1_amd64.deb"
TRIXIE = f"{MAIN}/dists/trixie"


def jaguar() -> Cluster:
    return load_cluster(ROOT / "examples" / "jaguar" / "cluster.yaml")


def sources() -> list[str]:
    """Return host/path of every file that the archive's lists name."""
    paths = [f"{TRIXIE}/{IMAGES}/{name}" for name in NETBOOT]
    for path in archive.FOLDER.rglob("Packages"):
        base = SECURITY if "debian-security" in path.parts else MAIN
        paths += [package.source for package in debian.packages(path.read_text(), base)]
    return paths


@pytest.fixture(scope="module")
def needs() -> tuple[HostPackages, ...]:
    return host_packages([jaguar()])


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A mirror with the archive, and an empty cache."""
    monkeypatch.setenv("MENAGERIE_CACHE", str(tmp_path / "cache"))
    archive.filled(tmp_path / "site", sources())
    return tmp_path / "site"


def collected(site: Path, needs: tuple[HostPackages, ...]) -> tuple[Entry, ...]:
    return collect(needs, FolderPlace(site), Stage(), keyring=str(archive.KEY))


def test_clusters_with_sites_need_what_their_machines_install(needs: tuple[HostPackages, ...]) -> None:
    (one,) = needs
    assert (one.release, one.clusters) == ("trixie", ("jaguar",))
    assert {"chrony", "unattended-upgrades", "frr", "dkms"} <= set(one.names)


def test_machines_at_sites_without_provisioning_count_for_the_releases_that_are_named() -> None:
    lab = load_cluster(ROOT / "inventories" / "lab" / "cluster.yaml")
    assert host_packages([lab]) == ()
    chosen = host_packages([lab, jaguar()], [Release.BOOKWORM])
    assert {each.release: each.clusters for each in chosen} == {"bookworm": ("lab",), "trixie": ("jaguar",)}


@pytest.mark.parametrize(
    ("spec", "words", "releases"),
    [
        ("examples/jaguar", (), ["trixie"]),
        ("examples/jaguar", ("--no-debian",), []),
        ("inventories/lab", ("--site-release", "bookworm,trixie"), ["bookworm", "trixie"]),
    ],
)
def test_a_dry_run_says_what_of_debian_a_bundle_would_have(
    menagerie: Menagerie, tmp_path: Path, spec: str, words: tuple[str, ...], releases: list[str]
) -> None:
    output = tmp_path / "some.bundle"
    ran = menagerie(
        "bundle",
        str(ROOT / spec / "cluster.yaml"),
        "--mirror",
        str(tmp_path),
        "-o",
        str(output),
        "--dry-run",
        "--json",
        *words,
    )
    assert (ran.code, [each["release"] for each in ran.json["debian"]]) == (0, releases)
    assert not output.exists()


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("--site-release", "buster"), "no release buster"),
        (("--site-release", "trixie", "--no-debian"), "--no-debian leaves out"),
    ],
)
def test_releases_that_can_not_be_had_are_refused(
    menagerie: Menagerie, tmp_path: Path, words: tuple[str, ...], text: str
) -> None:
    spec = ROOT / "examples" / "horus" / "cluster.yaml"
    ran = menagerie("bundle", str(spec), "--mirror", str(tmp_path), "-o", str(tmp_path / "x.bundle"), *words)
    assert ran.code == 2
    assert text in " ".join(ran.err.split())


def test_packages_come_with_what_they_need_in_every_version_that_machines_may_take(
    site: Path, needs: tuple[HostPackages, ...]
) -> None:
    entries = collected(site, needs)
    names = {entry.source.partition("/pool/")[2].rpartition("/")[2] for entry in entries}
    assert {"libcap2_1_amd64.deb", "xauth_1_amd64.deb", "dpkg_1_amd64.deb", "cron_1_amd64.deb"} <= names
    assert {"grub-pc_1_amd64.deb", "grub-efi-amd64_1_amd64.deb", "base-installer_1_all.udeb"} <= names
    assert {f"{MAIN}/{archive.CHRONY}", f"{SECURITY}/{archive.CHRONY_FIXED}"} <= {entry.source for entry in entries}
    assert {f"{TRIXIE}/{IMAGES}/{name}" for name in NETBOOT} <= {entry.source for entry in entries}
    assert NETHACK not in {entry.source for entry in entries}
    assert {(entry.kind, entry.known, entry.clusters) for entry in entries} == {
        (Kind.DEBIAN, Known.SIGNED, ("jaguar",))
    }
    assert all(Stage().has(entry.sha256) for entry in entries)


def test_what_is_signed_comes_last_so_that_a_mirror_never_names_what_it_lacks(
    site: Path, needs: tuple[HostPackages, ...]
) -> None:
    listed = [entry.source for entry in collected(site, needs)]
    signed = [source for source in listed if source.rpartition("/")[2] in ("InRelease", "Release", "Release.gpg")]
    assert len(signed) == 5
    assert listed[-5:] == signed
    first_list = next(number for number, source in enumerate(listed) if source.endswith("/Packages"))
    assert not any("/pool/" in source for source in listed[first_list:])


@pytest.mark.parametrize(
    ("file", "why"),
    [
        (f"{TRIXIE}/InRelease", r"differs from its InRelease|apt doesn't accept Debian's lists"),
        (f"{SECURITY}/dists/trixie-security/InRelease", "(?s)apt doesn't accept Debian's lists.*signature"),
        (f"{TRIXIE}/Release", "has a Release that differs from its InRelease"),
        (f"{TRIXIE}/Release.gpg", "apt doesn't accept Debian's lists"),
        (f"{TRIXIE}/main/binary-amd64/Packages", r"trixie/main/binary-amd64/Packages 13.8 from .* has SHA-256"),
        (f"{MAIN}/{archive.CHRONY}", r"chrony 4.6~rc1\+b2 from .* has SHA-256"),
        (f"{TRIXIE}/{IMAGES}/{NETBOOT[1]}", r"installer/initrd.gz 13.8 from .* has SHA-256"),
    ],
)
def test_one_flipped_byte_of_the_archive_is_refused(
    site: Path, needs: tuple[HostPackages, ...], file: str, why: str
) -> None:
    data = bytearray((site / file).read_bytes())
    at = data.find(b"Origin: ") if b"Origin: " in data else len(data) // 2
    data[at + 9] ^= 1
    (site / file).write_bytes(data)
    with pytest.raises(ArtefactError, match=why):
        collected(site, needs)


def test_another_key_s_archive_is_refused(
    site: Path, needs: tuple[HostPackages, ...], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("tools.apt.KEYRING", str(tmp_path / "other.asc"))
    (tmp_path / "other.asc").write_text("no key\n")
    with pytest.raises(ArtefactError, match="apt doesn't accept Debian's lists"):
        collect(needs, FolderPlace(site), Stage())


def test_a_package_that_debian_does_not_have_is_named(site: Path, needs: tuple[HostPackages, ...]) -> None:
    wrong = HostPackages(needs[0].release, needs[0].clusters, ("no-such-package",))
    with pytest.raises(ArtefactError, match="no-such-package"):
        collected(site, (wrong,))


def test_a_machine_without_apt_says_so(
    site: Path, needs: tuple[HostPackages, ...], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ArtefactError, match="apt-get is missing on this machine.*--no-debian"):
        collected(site, needs)


def test_the_lock_and_the_bill_of_materials_know_packages(site: Path, needs: tuple[HostPackages, ...]) -> None:
    entries = collected(site, needs)
    index, _ = pack.index_of(entries, Stage())
    lock = make.lock_of(index, "jaguar")
    assert (lock.sha256, lock.own_builds) == ({}, {})
    (chrony,) = (entry for entry in entries if entry.source == f"{MAIN}/{archive.CHRONY}")
    assert purl(chrony).to_string() == "pkg:deb/debian/chrony@4.6~rc1%2Bb2"


@pytest.fixture
def bundle(site: Path, needs: tuple[HostPackages, ...], tmp_path: Path) -> Path:
    """A bundle of nothing but the packages."""
    pair = minisign.KeyPair.generate()
    (tmp_path / "keys").write_bytes(bytes(pair.public_key))
    entries, stage = collected(site, needs), Stage()
    index, bill = pack.index_of(entries, stage)
    pack.write(tmp_path / "sites.bundle", index, bill, stage, pair.secret_key)
    assert Index.model_validate_json(index.written()) == index
    return tmp_path / "sites.bundle"


def test_apt_on_a_machine_installs_from_a_served_bundle(bundle: Path, tmp_path: Path) -> None:
    """apt asks for lists by their hash first, and takes them by name."""
    with opened(bundle, signing.public_keys(tmp_path / "keys")) as own:
        served = server(own, "127.0.0.1", 0, lambda _: None)
        threading.Thread(target=served.serve_forever, daemon=True).start()
        try:
            fixed = downloaded(
                tmp_path / "machine", f"http://127.0.0.1:{served.server_port}", "chrony", "openssh-server"
            )
        finally:
            served.shutdown()
            served.server_close()
    assert {path.name.partition("_")[0]: path.read_bytes() for path in fixed} == {
        "chrony": content(f"{SECURITY}/{archive.CHRONY_FIXED}"),
        "openssh-server": content(f"{MAIN}/pool/main/o/ssh_10.0p1-7_amd64.deb"),
    }


def downloaded(home: Path, mirror: str, *names: str) -> list[Path]:
    """Let apt fetch packages from a mirror, as a machine does."""
    for folder in ("state/lists/partial", "cache/archives/partial", "etc", "files"):
        (home / folder).mkdir(parents=True)
    (home / "status").touch()
    lines = [(MAIN, "trixie"), (MAIN, "trixie-updates"), (SECURITY, "trixie-security")]
    (home / "sources.list").write_text(
        "".join(f"deb [signed-by={archive.KEY}] {mirror}/{where} {suite} main\n" for where, suite in lines)
    )
    (home / "apt.conf").write_text(
        f'Dir::Etc "{home}/etc/"; Dir::Etc::parts "/dev/null"; Dir::Etc::sourcelist "{home}/sources.list";\n'
        f'Dir::Etc::sourceparts "/dev/null"; Dir::State "{home}/state/"; Dir::State::status "{home}/status";\n'
        f'Dir::Cache "{home}/cache/"; APT::Sandbox::User "root"; APT::Architecture "amd64";\n'
    )
    for command in (("update", "--error-on=any"), ("download", *names)):
        done = subprocess.run(
            ["apt-get", "-qq", *command],
            cwd=home / "files",
            env={"APT_CONFIG": str(home / "apt.conf"), "PATH": "/usr/bin:/bin"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
    return list((home / "files").iterdir())


def test_a_folder_gets_the_archive_once(bundle: Path, site: Path, tmp_path: Path) -> None:
    target = target_of(str(tmp_path / "mirror"))
    with opened(bundle, signing.public_keys(tmp_path / "keys")) as own:
        first = push(own, target, dry_run=False)
        again = push(own, target, dry_run=False)
    assert (again.uploaded, again.same, first.other) == ((), first.uploaded, ())
    for entry in first.uploaded:
        assert digest((tmp_path / "mirror" / entry.source).read_bytes()) == entry.sha256
