from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from cluster.artefacts import ArtefactSource, catalogue
from cluster.files import HostConfig, HostFile
from etcd.flags import flags
from etcd.render import data_disk, host_config, host_configs, merge, secrets, unit
from network.addresses import plan

GOLDEN = Path(__file__).parents[1] / "golden" / "lab"
SOURCE = ArtefactSource(mirror=None, sha256={catalogue()["etcd"].source: "0" * 64})


@pytest.mark.parametrize(("role", "member"), [("main", "etcd-main-1"), ("events", "etcd-events-2")])
def test_the_files_of_a_member_are_what_was_reviewed(lab, role, member):
    """MENAGERIE_UPDATE_GOLDEN=1 rewrites them; review the difference."""
    folder = GOLDEN / member
    made = {file.path.lstrip("/"): file.text for file in host_config(lab, role, member, plan(lab), SOURCE).files}
    if os.environ.get("MENAGERIE_UPDATE_GOLDEN"):
        for path, text in made.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text)
    kept = {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}
    assert made == kept


@pytest.mark.parametrize("role", ["main", "events"])
def test_a_member_passes_the_cis_controls_on_its_command_line(lab, role):
    given = dict(flag.removeprefix("--").split("=", 1) for flag in flags(lab, role, f"etcd-{role}-1", plan(lab)))
    assert {"cert-file", "key-file", "peer-cert-file", "peer-key-file"} <= given.keys()
    assert given["client-cert-auth"] == given["peer-client-cert-auth"] == "true"
    assert not {"auto-tls", "peer-auto-tls", "config-file"} & given.keys()
    assert not given["trusted-ca-file"].startswith("/etc/kubernetes")
    assert given["data-dir"] == f"/var/lib/etcd/{role}"


def test_every_listener_but_the_metrics_of_the_host_itself_is_tls(lab):
    listeners = [flag for flag in flags(lab, "main", "etcd-main-2", plan(lab)) if flag.startswith("--listen")]
    urls = [url for flag in listeners for url in flag.split("=", 1)[1].split(",")]
    assert [url for url in urls if not url.startswith("https://")] == ["http://127.0.0.1:2383"]


def test_quota_and_timings_of_the_spec_reach_the_member(build):
    cluster = build({"etcd": {"main": {"quota": "8GiB", "heartbeat_interval": "250ms", "election_timeout": "3s"}}})
    given = flags(cluster, "main", "etcd-main-1", plan(cluster))
    expected = {"--quota-backend-bytes=8589934592", "--heartbeat-interval=250", "--election-timeout=3000"}
    assert expected <= set(given)


def test_unit_and_keys_are_readable_by_their_owner_alone(lab):
    config = host_config(lab, "main", "etcd-main-1", plan(lab), SOURCE)
    assert {file.path: file.mode for file in config.files}["/etc/systemd/system/etcd-main.service"] == 0o600
    keys = [secret for secret in config.secrets if secret.path.endswith(".key")]
    assert [(key.mode, key.owner) for key in keys] == [(0o600, "etcd:etcd")] * 2


def test_a_host_is_given_programs_user_and_unit(lab):
    config = host_config(lab, "main", "etcd-main-1", plan(lab), SOURCE)
    assert config.users == ("etcd",)
    assert config.start == ("etcd-main.service",)
    assert config.downloads[0].members == (
        ("etcd-v3.6.14-linux-amd64/etcd", "/usr/local/bin/etcd"),
        ("etcd-v3.6.14-linux-amd64/etcdctl", "/usr/local/bin/etcdctl"),
        ("etcd-v3.6.14-linux-amd64/etcdutl", "/usr/local/bin/etcdutl"),
    )


def test_clients_of_events_may_have_a_certificate_of_main_and_not_the_other_way_round():
    def accepted(role, file):
        return [secret.name for secret in secrets(role, f"etcd-{role}-1") if secret.path.endswith(f"/{file}")]

    assert accepted("events", "client-ca.crt") == ["etcd-main-ca.crt", "etcd-events-ca.crt"]
    assert accepted("events", "ca.crt") == ["etcd-events-ca.crt"]
    assert accepted("main", "client-ca.crt") == accepted("main", "ca.crt") == ["etcd-main-ca.crt"]


def test_a_member_asks_for_no_key_but_its_own():
    names = {secret.name for secret in secrets("events", "etcd-events-2") if secret.name.endswith(".key")}
    assert names == {"etcd-events-2-server.key", "etcd-events-2-peer.key"}


def test_an_archive_without_a_checksum_is_refused(lab):
    with pytest.raises(KeyError, match="the provider has no checksum for github.com/etcd-io/etcd/"):
        host_config(lab, "main", "etcd-main-1", plan(lab), ArtefactSource(mirror=None, sha256={}))


def test_dedicated_etcds_have_a_configuration_for_each_host(lab):
    configs = host_configs(lab, plan(lab), SOURCE)
    assert list(configs) == [f"etcd-{role}-{number}" for role in ("main", "events") for number in (1, 2, 3)]
    assert configs["etcd-events-3"] == host_config(lab, "events", "etcd-events-3", plan(lab), SOURCE)


def test_a_host_with_two_members_gets_both_units_and_one_download(build):
    cluster = build({"etcd": {"events": {"hosts": "main"}}})
    configs = host_configs(cluster, plan(cluster), SOURCE)
    assert list(configs) == ["etcd-main-1", "etcd-main-2", "etcd-main-3"]
    config = configs["etcd-main-2"]
    assert config.start == ("etcd-main.service", "etcd-events.service")
    assert (len(config.downloads), config.users, len(config.files)) == (1, ("etcd",), 6)
    assert {"etcd-main-2-peer.key", "etcd-events-2-peer.key"} <= {secret.name for secret in config.secrets}


def test_two_contents_for_one_path_are_refused():
    one, other = (HostConfig(files=(HostFile("/etc/x", text),)) for text in ("a", "b"))
    assert merge(one, one) == one
    with pytest.raises(ValueError, match="/etc/x has two different contents"):
        merge(one, other)


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd-analyze is not installed")
def test_systemd_accepts_the_unit_and_finds_it_hardened(lab, tmp_path):
    text = unit(lab, "events", "etcd-events-1", plan(lab)).replace("/usr/local/bin/etcd", shutil.which("true") or "")
    path = tmp_path / "etcd-events.service"
    path.write_text(text)
    verified = subprocess.run(["systemd-analyze", "verify", path], capture_output=True, text=True, check=False)
    assert "etcd-events.service" not in verified.stderr
    security = ["systemd-analyze", "security", "--offline=true", "--no-pager", path]
    exposure = subprocess.run(security, capture_output=True, text=True, check=False).stdout
    found = re.search(r"Overall exposure level for etcd-events.service: (\d+\.\d)", exposure)
    assert found
    assert float(found[1]) <= 2.0


def test_members_mount_the_disk_that_the_provider_names_and_none_where_it_names_none(build):
    cluster = build({"etcd": {"events": {"hosts": "main"}}})
    addresses = plan(cluster)

    def disks(role):
        return data_disk(cluster, role, (f"/dev/disk/by-id/google-etcd-{role}",), 2**30)

    by_host = host_configs(cluster, addresses, SOURCE, disks)
    assert [(disk.mount, disk.label, disk.devices, disk.size) for disk in by_host["etcd-main-1"].disks] == [
        ("/var/lib/etcd/main", "etcd-main", ("/dev/disk/by-id/google-etcd-main",), 2**30),
        ("/var/lib/etcd/events", "etcd-events", ("/dev/disk/by-id/google-etcd-events",), 2**30),
    ]
    assert {config.disks for config in host_configs(cluster, addresses, SOURCE).values()} == {()}


def test_a_unit_of_etcd_asks_for_the_place_where_its_disk_is_mounted(lab):
    for role in ("main", "events"):
        mount = data_disk(lab, role, ()).mount
        assert f"\nRequiresMountsFor={mount}\n" in unit(lab, role, f"etcd-{role}-1", plan(lab))
