"""Mirrors in a site's spec: the variables for role containerd, and the files that containerd reads."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from cluster.load import check_paths
from cluster.spec import Cluster
from inventories.build import build
from tests.roles.test_containerd import files

SPECS = Path(__file__).parents[1] / "specs"
MIRRORS = [
    {"address": "one.example.org:5000", "of": ["docker.io", "ghcr.io"]},
    {"address": "two.example.org", "of": ["docker.io"]},
    {"address": "three.example.org:8443"},
]


@dataclass(frozen=True)
class Variables:
    """The variables of a site's group and of all."""

    site: dict[str, Any]
    shared: dict[str, Any]

    def hosts(self, registry: str) -> dict[str, Any]:
        made = files(**{name: value for name, value in self.site.items() if name.startswith("containerd_registry")})
        return tomllib.loads(made[f"/etc/containerd/certs.d/{registry}/hosts.toml"])


@pytest.fixture
def of_registries(lab, outputs):
    """Return variables for a site's `registries`."""

    def variables(
        registries: dict[str, Any] | None, *, authority: str = "", given: dict[str, Any] | None = None
    ) -> Variables:
        spec = lab.spec.model_dump(mode="json")
        spec["sites"]["onprem"]["registries"] = registries
        changed = Cluster(
            spec=type(lab.spec).model_validate(spec),
            hosts=lab.hosts,
            authorities={"onprem": authority} if authority else {},
        )
        made = build(changed, outputs, variables={"site_onprem": given or {}}).data["all"]
        return Variables(made["children"]["site_onprem"]["vars"], made["vars"])

    return variables


def test_mirrors_are_in_the_order_of_the_spec_and_the_last_replaces_the_registry(of_registries) -> None:
    variables = of_registries({"mirrors": MIRRORS})
    assert variables.hosts("docker.io")["server"] == "https://two.example.org"
    assert list(variables.hosts("docker.io")["host"]) == ["https://one.example.org:5000"]
    assert variables.hosts("ghcr.io") == {"server": "https://one.example.org:5000"}
    assert variables.hosts("_default") == {"server": "https://three.example.org:8443"}


def test_registries_themselves_come_last_with_upstream(of_registries) -> None:
    variables = of_registries({"mirrors": MIRRORS, "upstream": True})
    assert list(variables.hosts("docker.io")["host"]) == ["https://one.example.org:5000", "https://two.example.org"]
    assert "server" not in variables.hosts("docker.io")


def test_the_ca_of_a_site_s_mirrors_is_the_content_of_its_file(of_registries) -> None:
    variables = of_registries({"mirrors": MIRRORS, "ca": "ca.pem"}, authority="PEM\n")
    assert variables.hosts("_default")["ca"] == "/etc/containerd/registry-ca.crt"
    assert variables.site["containerd_registry_ca"] == "PEM\n"


def test_mirrors_with_plain_http_have_http_urls(of_registries) -> None:
    assert of_registries({"mirrors": MIRRORS, "plain_http": True}).hosts("ghcr.io") == {
        "server": "http://one.example.org:5000"
    }


def test_a_site_without_mirrors_has_the_cluster_s(of_registries, outputs) -> None:
    variables = of_registries(None)
    assert not any(name.startswith("containerd_registry") for name in variables.site)
    assert set(variables.shared["containerd_registry_mirrors"].values()) == {outputs.artefacts.registry}


def test_group_vars_of_the_site_take_precedence(of_registries) -> None:
    variables = of_registries({"mirrors": MIRRORS}, given={"containerd_registry_upstream": True})
    assert variables.site["containerd_registry_upstream"] is True


def test_the_file_of_a_ca_is_read_with_the_spec(tmp_path, monkeypatch) -> None:
    text = (SPECS / "invalid-REG-002-plain-authority.yaml").read_text().replace("      plain_http: true\n", "")
    (tmp_path / "jaguar.yaml").write_text(text)
    for name in ("hosts-jaguar.yaml", "ca-of-a-mirror.pem"):
        (tmp_path / name).write_text((SPECS / name).read_text())
    monkeypatch.chdir(tmp_path)
    ((loaded,), problems) = check_paths([Path("jaguar.yaml")])
    assert problems == []
    assert loaded.cluster.authorities == {"sjc1": (SPECS / "ca-of-a-mirror.pem").read_text()}
