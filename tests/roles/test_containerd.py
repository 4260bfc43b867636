"""The files of role containerd, and whether the real containerd reads them."""

from __future__ import annotations

import subprocess
import tomllib
from pathlib import Path

import pytest

from components.workers.roles import _Role
from tests.programs import program

DOWNLOADS = {
    name: {"url": "https://x.example/y", "sha256": "0" * 64} for name in ("containerd", "runc", "cni_plugins", "crictl")
}


def files(**given):
    (declared,) = _Role("containerd", {"containerd_downloads": DOWNLOADS, **given}).declarations()
    return {file["path"]: file["text"] for file in declared.arguments["files"]}


def hosts(registry, **given):
    return tomllib.loads(files(**given)[f"/etc/containerd/certs.d/{registry}/hosts.toml"])


def test_a_single_mirror_is_the_only_source():
    assert hosts("docker.io", containerd_registry_mirrors={"docker.io": "m:5"}) == {"server": "https://m:5"}


def test_mirrors_are_tried_in_order_and_the_last_replaces_the_registry():
    hosts_toml = hosts("docker.io", containerd_registry_mirrors={"docker.io": ["a:1", "b:2", "c:3"]})
    mirror = {"capabilities": ["pull", "resolve"], "dial_timeout": "3s"}
    assert hosts_toml == {"server": "https://c:3", "host": {"https://a:1": mirror, "https://b:2": mirror}}
    assert list(hosts_toml["host"]) == ["https://a:1", "https://b:2"]


def test_the_registry_itself_is_asked_if_enabled():
    options = {"containerd_registry_upstream": True, "containerd_registry_scheme": "http"}
    hosts_toml = hosts("_default", containerd_registry_mirrors={"_default": "a:1"}, **options)
    assert list(hosts_toml) == ["host"]
    assert list(hosts_toml["host"]) == ["http://a:1"]


def test_a_custom_authority_is_set_for_every_mirror():
    options = {"containerd_registry_mirrors": {"docker.io": ["a:1", "b:2"]}, "containerd_registry_ca": "PEM\n"}
    path = "/etc/containerd/registry-ca.crt"
    assert files(**options)[path] == "PEM\n"
    hosts_toml = hosts("docker.io", **options)
    assert (hosts_toml["ca"], hosts_toml["host"]["https://a:1"]["ca"]) == (path, path)
    assert path not in files()


@pytest.fixture(scope="module")
def containerd():
    return program("containerd")


@pytest.mark.programs
def test_the_real_containerd_accepts_the_configuration_and_keeps_its_transfer_service(containerd, tmp_path: Path):
    text = files(containerd_max_unpacks=4)["/etc/containerd/config.toml"]
    path = tmp_path / "config.toml"
    path.write_text(text.replace("/etc/containerd", str(tmp_path)))
    (tmp_path / "conf.d").mkdir()
    (tmp_path / "conf.d" / "50-extra.toml").write_text(
        "version = 4\n[plugins.'io.containerd.cri.v1.runtime']\n  enable_cdi = true\n"
    )
    done = subprocess.run([containerd, "--config", path, "config", "dump"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "ncompatible" not in done.stderr
    plugins = tomllib.loads(done.stdout)["plugins"]
    images = plugins["io.containerd.cri.v1.images"]
    assert (images["image_pull_progress_timeout"], images["max_concurrent_downloads"]) == ("5m", 3)
    assert plugins["io.containerd.transfer.v1.local"]["max_concurrent_downloads"] == 12
    assert plugins["io.containerd.transfer.v1.local"]["max_concurrent_unpacks"] == 4
