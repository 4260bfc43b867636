from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from cluster.artefacts import ArtefactSource, catalogue
from cluster.files import HostConfig, HostFile
from etcd import agent, relay
from etcd.flags import flags
from etcd.render import data_disk, host_config, host_configs, merge, secrets, unit
from network.addresses import plan

GOLDEN = Path(__file__).parents[1] / "golden" / "lab"
SOURCE = ArtefactSource(mirror=None, sha256={catalogue()[name].source: "0" * 64 for name in ("etcd", "restic")})


@pytest.mark.parametrize(("role", "member"), [("main", "etcd-main-1"), ("events", "etcd-events-2")])
def test_the_files_of_a_member_match_the_golden_files(lab, role, member):
    """MENAGERIE_UPDATE_GOLDEN=1 rewrites them; review the difference."""
    folder = GOLDEN / member
    files = host_config(lab, role, member, plan(lab), SOURCE).files
    rendered = {file.path.lstrip("/"): file.text for file in files if not file.path.startswith(agent.LIBRARY)}
    if os.environ.get("MENAGERIE_UPDATE_GOLDEN"):
        for path, text in rendered.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text)
    kept = {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}
    assert rendered == kept


@pytest.mark.parametrize("role", ["main", "events"])
def test_a_members_command_line_passes_the_cis_controls(lab, role):
    given = dict(flag.removeprefix("--").split("=", 1) for flag in flags(lab, role, f"etcd-{role}-1", plan(lab)))
    assert {"cert-file", "key-file", "peer-cert-file", "peer-key-file"} <= given.keys()
    assert given["client-cert-auth"] == given["peer-client-cert-auth"] == "true"
    assert not {"auto-tls", "peer-auto-tls", "config-file"} & given.keys()
    assert not given["trusted-ca-file"].startswith("/etc/kubernetes")
    assert given["data-dir"] == f"/var/lib/etcd/{role}"


def test_every_listener_except_for_local_metrics_uses_tls(lab):
    listeners = [flag for flag in flags(lab, "main", "etcd-main-2", plan(lab)) if flag.startswith("--listen")]
    urls = [url for flag in listeners for url in flag.split("=", 1)[1].split(",")]
    assert [url for url in urls if not url.startswith("https://")] == ["http://127.0.0.1:2383"]


def test_quota_and_timings_of_the_spec_reach_the_member(build):
    cluster = build({"etcd": {"main": {"quota": "8GiB", "heartbeat_interval": "250ms", "election_timeout": "3s"}}})
    given = flags(cluster, "main", "etcd-main-1", plan(cluster))
    expected = {"--quota-backend-bytes=8589934592", "--heartbeat-interval=250", "--election-timeout=3000"}
    assert expected <= set(given)


def test_unit_and_keys_are_readable_only_by_their_owner(lab):
    config = host_config(lab, "main", "etcd-main-1", plan(lab), SOURCE)
    assert {file.path: file.mode for file in config.files}["/etc/systemd/system/etcd-main.service"] == 0o600
    keys = [secret for secret in config.secrets if secret.path.endswith(".key")]
    assert [(key.mode, key.owner) for key in keys] == [*[(0o600, "etcd:etcd")] * 2, (0o600, "root:root")]


def test_a_host_gets_programs_user_and_unit(lab):
    config = host_config(lab, "main", "etcd-main-1", plan(lab), SOURCE)
    assert config.users == ("etcd", "metrics-relay")
    assert config.start == (
        *("menagerie-agent.service", "etcd-main.service"),
        *("etcd-main-backup.timer", "etcd-main-drill.timer"),
        "metrics-relay.service",
    )
    assert config.packages == ("python3",)
    assert config.downloads[0].members == (
        ("etcd-v3.6.14-linux-amd64/etcd", "/usr/local/bin/etcd"),
        ("etcd-v3.6.14-linux-amd64/etcdctl", "/usr/local/bin/etcdctl"),
        ("etcd-v3.6.14-linux-amd64/etcdutl", "/usr/local/bin/etcdutl"),
    )


def test_events_accepts_client_certificates_of_main_but_not_the_other_way_round():
    def accepted(role, file):
        return [secret.name for secret in secrets(role, f"etcd-{role}-1") if secret.path.endswith(f"/{file}")]

    assert accepted("events", "client-ca.crt") == ["etcd-main-ca.crt", "etcd-events-ca.crt"]
    assert accepted("events", "ca.crt") == ["etcd-events-ca.crt"]
    assert accepted("main", "client-ca.crt") == accepted("main", "ca.crt") == ["etcd-main-ca.crt"]


def test_a_member_requests_only_its_own_keys():
    names = {secret.name for secret in secrets("events", "etcd-events-2") if secret.name.endswith(".key")}
    assert names == {"etcd-events-2-server.key", "etcd-events-2-peer.key"}


def test_an_archive_without_a_checksum_is_refused(lab):
    with pytest.raises(KeyError, match="the provider has no checksum for github.com/etcd-io/etcd/"):
        host_config(lab, "main", "etcd-main-1", plan(lab), ArtefactSource(mirror=None, sha256={}))


def test_an_etcd_without_backups_needs_neither_units_nor_restic_nor_its_checksum(build):
    cluster = build({"etcd": {"main": {"backup": None}}})
    source = ArtefactSource(mirror=None, sha256={catalogue()["etcd"].source: "0" * 64})
    config = host_config(cluster, "main", "etcd-main-1", plan(cluster), source)
    assert config.start == ("menagerie-agent.service", "etcd-main.service", "metrics-relay.service")
    assert [download.artefact.name for download in config.downloads] == ["etcd"]
    assert not [file for file in config.files if "backup" in file.path and not file.path.startswith(agent.LIBRARY)]
    with pytest.raises(KeyError, match="no checksum for github.com/restic/"):
        host_config(cluster, "events", "etcd-events-1", plan(cluster), source)


def test_the_secret_of_the_repository_belongs_to_root_and_to_one_etcd(lab):
    config = host_config(lab, "events", "etcd-events-2", plan(lab), SOURCE)
    of_backups = [secret for secret in config.secrets if "backups" in secret.name]
    assert [(secret.name, secret.path, secret.mode, secret.owner) for secret in of_backups] == [
        ("etcd-events-backups.json", "/etc/etcd/events/repository.json", 0o600, "root:root")
    ]


def test_hosts_of_members_check_their_turn_at_different_times(lab):
    texts = [
        {file.path: file.text for file in host_config(lab, "main", f"etcd-main-{n}", plan(lab), SOURCE).files}
        for n in (1, 2, 3)
    ]
    timers = [text["/etc/systemd/system/etcd-main-backup.timer"] for text in texts]
    assert [re.search(r"OnActiveSec=(\d+)s", timer)[1] for timer in timers] == ["60", "360", "660"]
    assert all("OnUnitActiveSec=900s" in timer for timer in timers)


def test_dedicated_etcds_have_a_configuration_for_each_host(lab):
    configs = host_configs(lab, plan(lab), SOURCE)
    assert list(configs) == [f"etcd-{role}-{number}" for role in ("main", "events") for number in (1, 2, 3)]
    assert configs["etcd-events-3"] == host_config(lab, "events", "etcd-events-3", plan(lab), SOURCE)


def test_a_host_with_two_members_gets_both_units_and_one_download(build):
    cluster = build({"etcd": {"events": {"hosts": "main"}}})
    configs = host_configs(cluster, plan(cluster), SOURCE)
    assert list(configs) == ["etcd-main-1", "etcd-main-2", "etcd-main-3"]
    config = configs["etcd-main-2"]
    units = ["menagerie-agent.service", "etcd-main.service", "metrics-relay.service", "etcd-events.service"]
    assert [unit for unit in config.start if unit.endswith(".service")] == units
    assert (len(config.downloads), config.users) == (2, ("etcd", "metrics-relay"))
    assert len([file for file in config.files if file.path.startswith("/etc/systemd/")]) == 16
    relayed = json.loads(next(file.text for file in config.files if file.path == relay.SETTINGS))
    assert relayed["upstreams"] == {
        "etcd-events": "http://127.0.0.1:2384/metrics",
        "etcd-main": "http://127.0.0.1:2383/metrics",
    }
    agent_settings = json.loads(next(file.text for file in config.files if file.path == agent.SETTINGS))
    assert {role: member["name"] for role, member in agent_settings["members"].items()} == {
        "main": "etcd-main-2",
        "events": "etcd-events-2",
    }
    assert {"etcd-main-2-peer.key", "etcd-events-2-peer.key"} <= {secret.name for secret in config.secrets}


def test_different_contents_for_one_path_are_refused():
    first, second = (HostConfig(files=(HostFile("/etc/x", text),)) for text in ("a", "b"))
    assert merge(first, first) == first
    with pytest.raises(ValueError, match="/etc/x has two different contents"):
        merge(first, second)


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd-analyze is not installed")
def test_systemd_accepts_the_unit_and_rates_it_hardened(lab, tmp_path):
    text = unit(lab, "events", "etcd-events-1", plan(lab)).replace("/usr/local/bin/etcd", shutil.which("true") or "")
    path = tmp_path / "etcd-events.service"
    path.write_text(text)
    verified = subprocess.run(["systemd-analyze", "verify", path], capture_output=True, text=True, check=False)
    assert "etcd-events.service" not in verified.stderr
    security = ["systemd-analyze", "security", "--offline=true", "--no-pager", path]
    exposure = subprocess.run(security, capture_output=True, text=True, check=False).stdout
    match = re.search(r"Overall exposure level for etcd-events.service: (\d+\.\d)", exposure)
    assert match
    assert float(match[1]) <= 2.0


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd-analyze is not installed")
def test_systemd_accepts_the_units_of_backups_and_rates_them_hardened(lab, tmp_path):
    rendered = {
        Path(file.path).name: file.text for file in host_config(lab, "main", "etcd-main-1", plan(lab), SOURCE).files
    }
    units = {name: text for name, text in rendered.items() if "backup" in name or "drill" in name if "." in name}
    del units["backup.json"], units["backup.py"], units["drill.py"]
    assert len(units) == 6
    for name, text in units.items():
        (tmp_path / name).write_text(text)
    for name in units:
        command = ["systemd-analyze", "verify", tmp_path / name]
        verified = subprocess.run(command, capture_output=True, text=True, check=False)
        assert f"{name}:" not in verified.stderr, verified.stderr
    for name in (each for each in units if each.endswith(".service")):
        security = ["systemd-analyze", "security", "--offline=true", "--no-pager", tmp_path / name]
        exposure = subprocess.run(security, capture_output=True, text=True, check=False).stdout
        match = re.search(rf"Overall exposure level for {name}: (\d+\.\d)", exposure)
        assert match
        assert float(match[1]) <= 2.0


def test_systemd_accepts_the_unit_of_the_agent_and_rates_it_confined(lab, tmp_path):
    path = tmp_path / agent.UNIT
    path.write_text(agent.unit(lab, ("main", "events")))
    verified = subprocess.run(["systemd-analyze", "verify", path], capture_output=True, text=True, check=False)
    assert agent.UNIT not in verified.stderr
    security = ["systemd-analyze", "security", "--offline=true", "--no-pager", path]
    exposure = subprocess.run(security, capture_output=True, text=True, check=False).stdout
    match = re.search(r"Overall exposure level for menagerie-agent.service: (\d+\.\d)", exposure)
    assert match
    assert float(match[1]) <= 3.5


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd-analyze is not installed")
def test_systemd_accepts_the_unit_of_the_relay_and_rates_it_hardened(lab, tmp_path):
    path = tmp_path / relay.UNIT
    path.write_text(relay.unit(lab))
    verified = subprocess.run(["systemd-analyze", "verify", path], capture_output=True, text=True, check=False)
    assert relay.UNIT not in verified.stderr
    security = ["systemd-analyze", "security", "--offline=true", "--no-pager", path]
    exposure = subprocess.run(security, capture_output=True, text=True, check=False).stdout
    match = re.search(r"Overall exposure level for metrics-relay.service: (\d+\.\d)", exposure)
    assert match
    assert float(match[1]) <= 2.0


def test_the_relay_has_its_own_user_and_reads_no_key_of_a_member(lab):
    config = host_config(lab, "main", "etcd-main-1", plan(lab), SOURCE)
    text = next(file.text for file in config.files if file.path == f"/etc/systemd/system/{relay.UNIT}")
    assert "\nUser=metrics-relay\n" in text
    loaded = re.findall(r"^LoadCredential=\S+:(\S+)$", text, re.MULTILINE)
    assert [path for path in loaded if not path.startswith("/etc/etcd/metrics-relay")] == []
    own = {secret.path for secret in config.secrets if secret.path.startswith("/etc/etcd/metrics-relay/")}
    assert {*loaded} == own | {relay.SETTINGS}
    (consumer,) = [each for each in config.refresh.consumers if each.unit == relay.UNIT]
    assert set(consumer.paths) == own


def test_without_anybody_who_asks_there_is_no_relay(build):
    silent = build({"monitoring": {"enabled": False}})
    config = host_config(silent, "main", "etcd-main-1", plan(silent), SOURCE)
    assert not [path for path in (*(f.path for f in config.files), *config.start) if "metrics-relay" in path]
    assert config.users == ("etcd",)
    assert [each.unit for each in config.refresh.consumers] == ["etcd-main.service"]


def test_the_agent_trusts_only_the_ca_of_main_also_on_hosts_of_events(lab):
    for host in ("etcd-main-1", "etcd-events-3"):
        (ca,) = agent.host_config(lab, host, plan(lab)).secrets
        assert (ca.name, ca.path) == ("etcd-main-ca.crt", agent.CA)


def test_a_held_member_does_not_start_and_a_joining_one_gets_its_flags(lab):
    text = unit(lab, "main", "etcd-main-1", plan(lab))
    assert "\nConditionPathExists=!/var/lib/etcd/main/.menagerie/held\n" in text
    assert re.search(r"--enable-grpc-gateway=false \\\n    \$MENAGERIE_JOIN\n", text)


def test_members_mount_the_disk_that_the_provider_names_and_none_without_one(build):
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


def test_a_unit_of_etcd_requires_the_mount_of_its_disk(lab):
    for role in ("main", "events"):
        mount = data_disk(lab, role, ()).mount
        assert f"\nRequiresMountsFor={mount}\n" in unit(lab, role, f"etcd-{role}-1", plan(lab))
