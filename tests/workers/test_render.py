"""Configuration of a worker in the region: everything that the roles declare, and the programs that replace Ansible."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from cluster.artefacts import ArtefactSource
from cluster.programs import without_words
from components.userdata import Payload
from components.workers import host_config, metadata
from components.workers.render import CA, JOIN, LIBRARY, OWN_ADDRESS, PREPARE, SERVING_CA, SETTINGS, in_region
from components.workers.roles import declarations
from network.addresses import plan

GOLDEN = Path(__file__).parents[1] / "golden" / "worker-in-region"


@pytest.fixture(scope="module")
def config(hybrid, source):
    return host_config(hybrid, "cpu", plan(hybrid), source)


@pytest.fixture(scope="module")
def declared(hybrid, source):
    return [each.arguments for each in declarations(in_region(hybrid, "cpu", plan(hybrid), source))]


def every(declared, kind):
    return [item for arguments in declared for item in arguments.get(kind, ())]


@pytest.fixture(scope="module")
def settings(config):
    return json.loads(next(file.text for file in config.files if file.path == SETTINGS))


def test_the_files_of_a_worker_in_the_region_match_the_golden_files(config):
    """MENAGERIE_UPDATE_GOLDEN=1 rewrites them; review the difference."""
    rendered = {file.path.lstrip("/"): file.text for file in config.files if not file.path.endswith(".py")}
    if os.environ.get("MENAGERIE_UPDATE_GOLDEN"):
        shutil.rmtree(GOLDEN, ignore_errors=True)
        for path, text in rendered.items():
            (GOLDEN / path).parent.mkdir(parents=True, exist_ok=True)
            (GOLDEN / path).write_text(text)
    kept = {str(path.relative_to(GOLDEN)): path.read_text() for path in GOLDEN.rglob("*") if path.is_file()}
    assert rendered == kept


def test_every_file_that_the_roles_declare_is_there_except_for_the_block_in_etc_hosts(config, declared):
    given = {file.path: (file.text, file.mode, file.owner) for file in config.files}
    for file in every(declared, "files"):
        if file["path"] == "/etc/hosts":
            assert file["block"]
            assert "/etc/hosts" not in given
            continue
        text = without_words(file["text"]) if file["path"].endswith(".py") else file["text"]
        expected = (text, int(file.get("mode", "0644"), 8), file.get("owner", "root:root"))
        assert given.pop(file["path"]) == expected
    own = {path for path in given if not path.startswith(f"{LIBRARY}/")}
    units = "/etc/systemd/system"
    guard = {metadata.GUARD, metadata.REFUSAL, f"{units}/{metadata.UNIT}"}
    assert own == {SETTINGS, f"{units}/flanneld.service.d/region.conf", f"{units}/worker@.service", *guard}


def test_every_program_that_the_roles_declare_is_there(config, declared, source):
    given = {
        (source.url(each.artefact), source.checksum(each.artefact), each.path, each.members, each.mode)
        for each in config.downloads
    }
    expected = {
        (each["url"], each["sha256"], each.get("path", ""), tuple(each.get("members", {}).items()), 0o755)
        for each in every(declared, "programs")
    }
    assert given == expected
    assert len(given) == 8


def test_every_unit_that_the_roles_start_is_started_and_kernel_and_join_run_in_order(config, declared):
    expected = [each["unit"] for each in every(declared, "units") if each.get("restarted", "always") == "always"]
    assert config.start == (
        PREPARE,
        metadata.UNIT,
        "menagerie-neighbours.timer",
        "containerd.service",
        "flanneld.path",
        "node-exporter.path",
        "menagerie-node-metrics@host.timer",
        "menagerie-node-metrics@gpus.timer",
        JOIN,
        "kubelet.service",
    )
    assert [unit for unit in config.start if unit not in (PREPARE, metadata.UNIT, JOIN)] == expected


def test_every_kernel_setting_and_module_that_the_roles_declare_is_applied(settings, declared):
    kernel = [
        {
            "paths": [
                file["path"] for file in arguments["files"] if re.match("/etc/(sysctl|modules-load).d/", file["path"])
            ],
            "swap_off": arguments.get("swap_off", False),
            "unsettable": arguments["unsettable"],
        }
        for arguments in declared
        if "unsettable" in arguments
    ]
    assert settings["kernel"] == kernel
    assert [(each["swap_off"], each["unsettable"], len(each["paths"])) for each in kernel] == [
        (True, "fail", 4),
        (False, "report", 1),
    ]


def test_every_command_that_the_roles_need_is_a_package_of_the_image(config, declared):
    commands = {name for arguments in declared for name in arguments.get("commands", {}).values()}
    assert set(config.packages) == {"python3", *commands}


def test_a_worker_joins_with_the_roles_settings_and_the_ca_of_its_bundle(config, settings, declared):
    join = declared[-1]
    given = settings["join"]
    assert {name: given[name] for name in ("config", "endpoint", "patches")} == {
        name: join[name] for name in ("config", "endpoint", "patches")
    }
    assert [(secret.name, secret.path) for secret in config.secrets] == [
        ("kubernetes-ca.crt", CA),
        ("kubelet-serving-ca.crt", SERVING_CA),
    ]
    assert (given["ca"], given["endpoint"]) == (CA, "api.horus.internal:6443")
    assert settings["followers"] == ["flanneld.service"]
    registration = given["config"]["nodeRegistration"]
    assert registration["taints"] == [{"key": "gpu", "value": "x", "effect": "NoSchedule"}]
    flags = {flag["name"]: flag["value"] for flag in registration["kubeletExtraArgs"]}
    assert flags == {"node-ip": OWN_ADDRESS, "node-labels": "a=b,menagerie/pool=cpu,openai.org/location=aws-us-east-1"}


def test_flanneld_gets_the_hosts_address_from_a_file_that_exists_before_it_starts(config, settings):
    texts = {file.path: file.text for file in config.files}
    unit = texts["/etc/systemd/system/flanneld.service"]
    assert "Environment=NODE_NAME=%H\n" in unit
    assert f"--iface={OWN_ADDRESS} " in unit
    dropin = texts["/etc/systemd/system/flanneld.service.d/region.conf"]
    assert dropin == f"[Service]\nEnvironmentFile={settings['environment']}\n"
    assert config.start.index(PREPARE) < config.start.index("flanneld.path")


@pytest.mark.parametrize("group", ["all", "pool_cpu"])
def test_a_variable_of_the_operator_reaches_the_worker(hybrid, source, group):
    patch = {"systemReserved": {"cpu": "1"}}
    given = {group: {"kubelet_config_patch": patch}, "pool_gpu": {"kubelet_config_patch": {"maxPods": 1}}}
    config = host_config(hybrid, "cpu", plan(hybrid), source, given)
    (text,) = [file.text for file in config.files if file.path.endswith("kubeletconfiguration0+merge.json")]
    assert json.loads(text) == patch


def test_variables_of_the_operator_have_the_precedence_of_ansible(hybrid, source):
    """A pool's variables override those for all, and a host's own override those of every group."""
    own = {"kubelet_labels": {"x": "all"}, "kubelet_extra_args": {"v": "all"}, "kubelet_node_ip": "192.0.2.1"}
    given = {"all": own, "pool_cpu": {"kubelet_extra_args": {"v": "pool"}}}
    variables = in_region(hybrid, "cpu", plan(hybrid), source, given)
    assert variables["kubelet_labels"].items() >= hybrid.spec.pools["cpu"].labels.items()
    assert "x" not in variables["kubelet_labels"]
    assert (variables["kubelet_extra_args"], variables["kubelet_node_ip"]) == ({"v": "pool"}, OWN_ADDRESS)


def test_a_program_without_a_checksum_is_named(hybrid):
    with pytest.raises(KeyError, match=r"no checksum for github\.com/containerd"):
        host_config(hybrid, "cpu", plan(hybrid), ArtefactSource(None, {}))


def test_the_payload_fits_into_the_store_of_every_cloud(config, source):
    assert len(Payload.of(config, source).packed()) < 40_000


def test_units_that_trust_the_authorities_are_restarted_for_new_ones_and_nothing_is_reported_to_an_etcd(config):
    refresh = config.refresh
    assert {each.unit: each.paths for each in refresh.consumers} == dict.fromkeys(
        ("kubelet.service", "flanneld.service"), ("/etc/kubernetes/pki/ca.crt",)
    )
    assert refresh.report == ()
    assert refresh.renew[-2:] == ("menagerie_host.in_region", "refresh")


def test_the_programs_need_only_the_standard_library(config, tmp_path):
    """Without a step, or with an unknown one, they do nothing."""
    for file in config.files:
        if file.path.startswith(f"{LIBRARY}/"):
            (tmp_path / "menagerie_host").mkdir(exist_ok=True)
            (tmp_path / "menagerie_host" / Path(file.path).name).write_text(file.text)
    command = [
        sys.executable,
        "-ISB",
        "-c",
        f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import menagerie_host.in_region",
    ]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd-analyze on this machine")
def test_systemd_understands_the_units(config, tmp_path):
    paths = []
    for file in config.files:
        name = Path(file.path).name
        if file.path.startswith("/etc/systemd/system/") and "/flanneld.service.d/" not in file.path and file.text:
            paths.append(tmp_path / name.replace("@.", "@join."))
            paths[-1].write_text(re.sub(r"^(ExecStart\w*)=\S+", r"\1=/bin/true", file.text, flags=re.MULTILINE))
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", *paths], check=False, capture_output=True, text=True
    )
    assert [line for line in done.stderr.splitlines() if str(tmp_path) in line or "Unknown" in line] == []
