from __future__ import annotations

import base64
import gzip
import json
import random

import pytest
import yaml

from cluster.artefacts import Artefact, ArtefactSource
from cluster.files import Download, HostConfig, HostFile, SecretRef
from userdata import render
from userdata.cloud_init import LIMIT_BYTES, UserDataTooLarge

ETCD = Artefact("etcd", "1", "github.com/etcd/etcd.tar.gz")
SOURCE = ArtefactSource("http://mirror", {ETCD.source: "ab" * 32})


class Store:
    """A secret store that has nothing."""

    def script(self) -> str:
        return "#!/usr/bin/python3\nraise SystemExit(1)\n"


STORE = Store()
CONFIG = HostConfig(
    files=(HostFile("/etc/a", "text ä\n", 0o600, "etcd:etcd"),),
    secrets=(SecretRef("ca", "/etc/ca", 0o644), SecretRef("ca-2", "/etc/ca", 0o644)),
    downloads=(Download(ETCD, members=(("etcd/etcd", "/usr/local/bin/etcd"),)),),
    users=("etcd",),
    start=("etcd-main.service",),
    packages=("python3",),
)


def opened(text):
    """path -> (permissions, content) of the files in user data."""
    files = yaml.safe_load(text)["write_files"]
    assert {file["encoding"] for file in files} == {"gz+b64"}
    return {f["path"]: (f["permissions"], gzip.decompress(base64.b64decode(f["content"])).decode()) for f in files}


def test_equal_input_gives_equal_bytes():
    assert render(CONFIG, SOURCE, STORE, "etcd-main-1") == render(CONFIG, SOURCE, STORE, "etcd-main-1")


def test_user_data_is_a_cloud_config_that_starts_the_boot_without_waiting_for_it():
    text = render(CONFIG, SOURCE, STORE)
    assert text.startswith("#cloud-config\n")
    assert yaml.safe_load(text)["runcmd"] == [
        ["systemctl", "daemon-reload"],
        ["systemctl", "enable", "--now", "--no-block", "menagerie-boot.service"],
    ]


def test_a_name_is_set_where_one_is_given_and_else_left_to_the_cloud():
    named, unnamed = (yaml.safe_load(render(CONFIG, SOURCE, STORE, name)) for name in ("etcd-main-1", None))
    assert named["hostname"] == "etcd-main-1"
    assert "hostname" not in unnamed


def test_nobody_gets_an_account():
    loaded = yaml.safe_load(render(CONFIG, SOURCE, STORE))
    assert (loaded["users"], loaded["ssh_pwauth"]) == ([], False)


def test_the_boot_program_is_told_all_of_the_configuration_and_secrets_by_name_only():
    mode, text = opened(render(CONFIG, SOURCE, STORE))["/var/lib/menagerie/boot.json"]
    told = json.loads(text)
    assert mode == "0600"
    assert told["files"] == [{"path": "/etc/a", "text": "text ä\n", "mode": 0o600, "owner": "etcd:etcd"}]
    assert told["downloads"][0]["url"] == "http://mirror/github.com/etcd/etcd.tar.gz"
    assert told["downloads"][0]["sha256"] == "ab" * 32
    assert [secret["name"] for secret in told["secrets"]] == ["ca", "ca-2"]
    assert (told["users"], told["start"], told["packages"]) == (["etcd"], ["etcd-main.service"], ["python3"])


def test_the_boot_program_and_the_store_can_be_run():
    files = opened(render(CONFIG, SOURCE, STORE))
    for path, permissions in (("/usr/local/sbin/menagerie-boot", "0755"), ("/usr/local/sbin/menagerie-secret", "0700")):
        assert files[path][0] == permissions
        assert files[path][1].startswith("#!/usr/bin/python3\n")
        compile(files[path][1], path, "exec")


def test_a_download_without_a_checksum_is_refused():
    with pytest.raises(KeyError, match=r"no checksum for github\.com/etcd"):
        render(CONFIG, ArtefactSource(None, {}), STORE)


def test_more_than_a_cloud_takes_is_refused_with_the_size():
    noise = base64.b85encode(random.Random(1).randbytes(LIMIT_BYTES)).decode()
    with pytest.raises(UserDataTooLarge, match=str(LIMIT_BYTES)):
        render(HostConfig(files=(HostFile("/etc/noise", noise),)), SOURCE, STORE)


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
        render(config, SOURCE, STORE)
