from __future__ import annotations

import base64
import hashlib
import json
import lzma
from dataclasses import replace

import pytest

from cluster.artefacts import Artefact, ArtefactSource
from cluster.files import Disk, Download, HostConfig, HostFile, Refresh, SecretRef
from components.userdata import Payload

ETCD = Artefact("etcd", "1", "github.com/etcd/etcd.tar.gz")
SOURCE = ArtefactSource("http://mirror", {ETCD.source: "ab" * 32})
CONFIG = HostConfig(
    files=(HostFile("/etc/a", "text ä\n", 0o600, "etcd:etcd"),),
    secrets=(SecretRef("ca", "/etc/ca", 0o644), SecretRef("ca-2", "/etc/ca", 0o644)),
    downloads=(Download(ETCD, members=(("etcd/etcd", "/usr/local/bin/etcd"),)),),
    users=("etcd",),
    start=("etcd-main.service",),
    packages=("python3",),
)


def test_it_holds_the_whole_configuration_but_only_names_of_secrets():
    content = json.loads(Payload.of(CONFIG, SOURCE).text)
    assert content["files"] == [{"path": "/etc/a", "text": "text ä\n", "mode": 0o600, "owner": "etcd:etcd"}]
    assert content["downloads"][0]["url"] == "http://mirror/github.com/etcd/etcd.tar.gz"
    assert content["downloads"][0]["sha256"] == "ab" * 32
    assert [secret["name"] for secret in content["secrets"]] == ["ca", "ca-2"]
    assert (content["users"], content["start"], content["packages"]) == (["etcd"], ["etcd-main.service"], ["python3"])


def test_its_name_and_hash_depend_only_on_its_text():
    payload = Payload.of(CONFIG, SOURCE)
    assert Payload.of(CONFIG, SOURCE) == payload
    assert payload.sha256 == hashlib.sha256(payload.text.encode()).hexdigest()
    assert payload.name == f"payload-{payload.sha256[:16]}"


def test_the_store_gets_it_as_xz_in_base85():
    payload = Payload.of(CONFIG, SOURCE)
    assert lzma.decompress(base64.b85decode(payload.packed())).decode() == payload.text
    assert json.dumps(payload.packed()) == f'"{payload.packed()}"'


@pytest.mark.parametrize(
    "change",
    [
        {"files": (HostFile("/etc/a", "other\n", 0o600, "etcd:etcd"),)},
        {"secrets": CONFIG.secrets[:1]},
        {"downloads": ()},
        {"users": ()},
        {"start": ()},
        {"packages": ()},
        {"refresh": Refresh((), ("etcdctl",))},
        {"disks": (Disk("/var/lib/etcd/main", "etcd-main", ("/dev/disk/*",)),)},
    ],
    ids=lambda change: next(iter(change)),
)
def test_any_change_of_a_host_gives_another_payload(change):
    assert Payload.of(replace(CONFIG, **change), SOURCE).name != Payload.of(CONFIG, SOURCE).name


def test_another_checksum_of_a_download_gives_another_payload():
    other = ArtefactSource("http://mirror", {ETCD.source: "cd" * 32})
    assert Payload.of(CONFIG, other).name != Payload.of(CONFIG, SOURCE).name


def test_a_download_without_a_checksum_is_refused():
    with pytest.raises(KeyError, match=r"no checksum for github\.com/etcd"):
        Payload.of(CONFIG, ArtefactSource(None, {}))


@pytest.mark.parametrize(
    "config",
    [
        HostConfig(files=(HostFile("/a", "1"), HostFile("/a", "2"))),
        HostConfig(files=(HostFile("/a", "1"),), secrets=(SecretRef("s", "/a"),)),
        HostConfig(secrets=(SecretRef("s", "/a", 0o600), SecretRef("t", "/a", 0o644))),
        HostConfig(downloads=(Download(ETCD),)),
        HostConfig(downloads=(Download(ETCD, path="/a", members=(("b", "/b"),)),)),
    ],
    ids=["file twice", "file and secret", "modes differ", "nowhere to go", "two ways to go"],
)
def test_a_configuration_that_contradicts_itself_is_refused(config):
    with pytest.raises(ValueError, match=r"written twice|different modes|needs either"):
        Payload.of(config, SOURCE)


@pytest.mark.parametrize(
    ("disks", "problem"),
    [
        ((Disk("/a", "x", ()), Disk("/a", "y", ())), "two disks have the same mount: /a"),
        ((Disk("/a", "x", ()), Disk("/b", "x", ())), "two disks have the same label: x"),
        ((Disk("/a", "etcd-main-of-horus", ()),), "ext4 takes 1 to 16 bytes"),
        ((Disk("/a", "", ()),), "can't be the label"),
    ],
)
def test_indistinguishable_disks_are_refused(disks, problem):
    with pytest.raises(ValueError, match=problem):
        Payload.of(HostConfig(disks=disks), SOURCE)


def test_only_hosts_that_refresh_keys_get_the_program_for_it():
    content = json.loads(
        Payload.of(replace(CONFIG, refresh=Refresh((), ("etcdctl",), reader="etcd-main-1")), SOURCE).text
    )
    assert "/usr/local/sbin/menagerie-refresh" in {file["path"] for file in content["files"]}
    assert (content["start"][-1], content["refresh"]["reader"]) == ("menagerie-refresh.timer", "etcd-main-1")
    assert "refresh" not in Payload.of(CONFIG, SOURCE).text
