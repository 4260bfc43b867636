"""What images of hosts must contain, against what Debian's images for clouds do contain, and the recipe of GPU images."""

from __future__ import annotations

import ast
import json
import os
import re
import runpy
from pathlib import Path
from typing import Any

import hcl2
import pytest
import yaml

from cluster.debian_images import CLOUDS, packages
from cluster.load import load_cluster
from cluster.provisioning import Release
from components.image_needs import BOOT, GPU, PROVIDERS, WORKER, Image, Needs, edge_router, of_cluster
from network.addresses import plan
from stacks.aws import launch
from stacks.gcp import hosts as gcp_hosts

ROOT = Path(__file__).parents[2]
RECIPE = ROOT / "examples" / "images"
EXAMPLES = {"aws": ("aws-small", "horus"), "azure": ("azure-small", "jaguar"), "gcp": ("gcp-small", "ibis")}
# Programs of hosts, by folder: all that boot from a payload, and workers only.
EVERYWHERE = (
    *("components/userdata", "components/control_plane/host", "etcd/host", "cluster/audit/host"),
    *("stacks/aws", "stacks/azure", "stacks/gcp"),
)
ON_WORKERS = ("roles/module_utils/menagerie_host", "roles/flannel/files")
DOWNLOADED = {"etcd", "etcdctl", "etcdutl"}
CALLS = {"run", "Popen", "check_output", "check_call"}


@pytest.fixture(scope="module")
def needs() -> dict[str, dict[str, Needs]]:
    """Return cloud -> kind of host -> needs, from every example of the cloud."""
    by_cloud: dict[str, dict[str, Needs]] = {}
    for cloud, names in EXAMPLES.items():
        for name in names:
            cluster = load_cluster(ROOT / "examples" / name / "cluster.yaml")
            for kind, each in of_cluster(cluster, plan(cluster)).items():
                by_cloud.setdefault(cloud, {})[f"{name}: {kind}"] = each
    return by_cloud


@pytest.mark.parametrize("release", Release)
@pytest.mark.parametrize("cloud", CLOUDS)
def test_debians_image_of_the_cloud_has_all_that_payloads_demand(needs, cloud, release) -> None:
    there = packages(cloud, release)
    assert {"API servers", "hosts of etcd members"} <= {kind.partition(": ")[2] for kind in needs[cloud]}
    for kind, each in needs[cloud].items():
        if kind.endswith("edge routers"):
            continue
        of_programs = {PROVIDERS[name] for name in each.programs if name not in GPU}
        assert set(each.packages) | of_programs <= there, kind


def test_a_package_that_no_image_has_is_found_missing() -> None:
    """nftables is the one that workers used to demand."""
    image = Image(packages(CLOUDS[0], Release.TRIXIE), frozenset({"ip"}), frozenset({"VXLAN"}))
    asked = Needs(("iptables", "nftables"), ("ip", "nft"), ("VXLAN", "NF_TABLES"))
    assert asked.missing(image) == ("package nftables", "program nft", "kernel option CONFIG_NF_TABLES")


def called(folder: str) -> set[str]:
    """Return the programs that the programs in a folder call by a literal name."""
    programs = set()
    root = ROOT / folder
    named = [path for path in root.rglob("*") if path.suffix == ".py" or (path.is_file() and not path.suffix)]
    for path in (path for path in named if not folder.startswith("stacks") or path.name.startswith("menagerie_")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", "")) in CALLS:
                first = node.args[0] if node.args else None
                if isinstance(first, ast.List | ast.Tuple) and first.elts:
                    first = first.elts[0]
                if isinstance(first, ast.Constant) and isinstance(first.value, str):
                    programs.add(first.value)
    return programs


def test_programs_of_hosts_call_only_programs_that_are_listed() -> None:
    everywhere = set().union(*map(called, EVERYWHERE))
    assert {"mkfs.ext4", "useradd", "dpkg-query"} <= everywhere
    assert everywhere - DOWNLOADED <= set(BOOT)
    assert set().union(*map(called, ON_WORKERS)) <= {*BOOT, *WORKER}


def test_every_program_has_a_package(needs) -> None:
    programs = {name for kinds in needs.values() for each in kinds.values() for name in each.programs}
    assert programs - set(GPU) <= set(PROVIDERS)
    assert {"iptables-restore", "modprobe"} <= programs


def test_pools_with_a_driver_in_their_image_need_its_programs(needs) -> None:
    having = {kind.partition("pool ")[2] for kind, each in needs["gcp"].items() if "nvidia-smi" in each.programs}
    pools = load_cluster(ROOT / "examples/ibis/cluster.yaml").spec.pools
    assert having == {name for name, pool in pools.items() if pool.image}


def test_an_edge_router_needs_the_packages_that_its_role_installs() -> None:
    assert {"frr", "nftables", "strongswan-swanctl"} <= set(edge_router().packages)


def test_the_manifest_of_a_machine_says_what_it_has(tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/os-release").write_text('PRETTY_NAME="Debian GNU/Linux 13 (trixie)"\nID=debian\n')
    (tmp_path / "usr/bin").mkdir(parents=True)
    (tmp_path / "usr/bin/ip").touch(0o755)
    (tmp_path / "usr/bin/notes").touch(0o644)
    (tmp_path / "usr/bin/iptables").symlink_to("/etc/alternatives/iptables")
    (tmp_path / "boot").mkdir()
    (tmp_path / "boot/config-1").write_text("CONFIG_VXLAN=m\nCONFIG_NF_TABLES=y\n# CONFIG_IP_SET is not set\n")
    (tmp_path / "boot/config-2").write_text("CONFIG_VXLAN=m\n")
    runpy.run_path(str(RECIPE / "manifest.py"))["main"](tmp_path)
    image = Image.of_manifest(capsys.readouterr().out)
    assert (image.programs, image.kernel) == (frozenset({"ip", "iptables"}), frozenset({"VXLAN"}))
    assert "dpkg" in image.packages
    with pytest.raises(ValueError, match="not a manifest of an image"):
        Image.of_manifest(json.dumps({"packages": {}}))


def test_the_recipe_installs_what_hosts_and_gpus_need(needs) -> None:
    """MENAGERIE_UPDATE_GOLDEN=1 rewrites both lists."""
    every = [each for kinds in needs.values() for kind, each in kinds.items() if not kind.endswith("edge routers")]
    debs = {name for each in every for name in each.packages}
    debs |= {PROVIDERS[name] for each in every for name in each.programs if name not in GPU}
    role = yaml.safe_load((ROOT / "roles/gpu/defaults/main.yml").read_text())
    nvidia = [*role["gpu_driver_packages"], *role["gpu_packages"]]
    for name, listed in (("packages.txt", sorted(debs)), ("nvidia-packages.txt", sorted(nvidia))):
        text = "# Written by `make golden`.\n" + "".join(f"{each}\n" for each in listed)
        if os.environ.get("MENAGERIE_UPDATE_GOLDEN"):
            (RECIPE / name).write_text(text)
        assert (RECIPE / name).read_text() == text, "run `make golden`"
    script = (RECIPE / "install.sh").read_text()
    assert set(re.findall(r"\$folder/(\S+?\.txt)", script)) == {"packages.txt", "nvidia-packages.txt"}
    assert set(role["gpu_fabric_manager_packages"]) <= set(script.split())


def test_the_recipe_starts_from_debians_images_and_uploads_every_file_of_its_folder() -> None:
    text = (RECIPE / "gpu.pkr.hcl").read_text()
    recipe = json.loads(json.dumps(hcl2.loads(text)).replace('\\"', ""))
    sources = {kind: body["gpu"] for each in recipe["source"] for kind, body in each.items() if kind != "__is_block__"}
    assert set(sources) == {"amazon-ebs", "azure-arm", "googlecompute"}
    release = re.findall(r"\d+", launch.PARAMETER)[0]
    assert sources["azure-arm"]["image_offer"] == f"debian-{release}"
    assert gcp_hosts.image(None, "n2-standard-8").endswith(f"/{sources['googlecompute']['source_image_family']}")
    assert f"debian-{release}-amd64-" in text
    (build,) = recipe["build"]
    assert [f"source.{kind}.gpu" for kind in sources] == build["sources"]
    uploaded = re.findall(r'"([\w.-]+)"', re.findall(r"for name in \[(.*?)\]", text)[0])
    assert {*uploaded, "gpu.pkr.hcl"} == {path.name for path in RECIPE.iterdir()}
    role = yaml.safe_load((ROOT / "roles/gpu/defaults/main.yml").read_text())
    (branch,) = [each["driver_branch"] for each in recipe["variable"] if "driver_branch" in each]
    assert branch["default"] == role["gpu_driver_branch"]
