"""The controllers' objects as text, and what must hold for them with any spec."""

from __future__ import annotations

import base64
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from clients.objects import key_of
from cluster.errors import RefusedError
from cluster.pools import TRUSTED_POOL, Taint, TaintEffect
from cluster.project import ROOT
from cluster.spec import Cluster
from controllers import contents, gather
from controllers.apply import _ANY_TENANCY, removable
from controllers.image import PACKAGES
from controllers.kinds import KINDS, METERING, TENANCY_CAPACITY, TENANCY_SYNC, WEB, ControllerKind, needed_kinds
from controllers.manifests import CONFIG_HASH, MOST_BYTES, NAMESPACE, Desired, objects
from controllers.web.delivered import TLS

GOLDEN = Path(__file__).parents[1] / "golden" / "lab" / "controllers.txt"
TENANCY: dict[str, Any] = {
    "directory": {
        "ldap": {
            "urls": ["ldaps://ldap.example.org"],
            "bind_dn": "cn=menagerie,dc=example,dc=org",
            "password": {"secret": "ldap"},
            "people": {"base": "ou=people,dc=example,dc=org"},
            "teams": {"base": "ou=teams,dc=example,dc=org"},
        }
    },
    "allocations": [{"pool": "workers", "team": "robotics", "hosts": 1}],
}


@pytest.fixture
def make(build: Callable[..., Cluster]) -> Callable[..., Desired]:
    def make_(*kinds: ControllerKind, files: dict[str, str] | None = None, **tenancy: Any) -> Desired:
        settings = build({"tenancy": {**TENANCY, **tenancy}}).spec.tenancy
        assert settings
        texts = {"cluster.yaml": "name: lab\n", "hosts.yaml": "hosts: []\n"} if files is None else files
        taints = (Taint(key="research/system", effect=TaintEffect.NO_SCHEDULE),)
        known = kinds or tuple(KINDS.values())
        return Desired(
            *(
                "registry.test/m@sha256:0",
                texts,
                settings,
                known,
                "system",
                taints,
                {"ldap": "a word"},
                {"key": "b word"},
            ),
            {TLS: "c word"},
            nodes=20,
        )

    return make_


def test_the_objects_equal_the_reviewed_ones(make: Callable[..., Desired]) -> None:
    """MENAGERIE_UPDATE_GOLDEN=1 rewrites them; review the difference."""
    text = yaml.safe_dump_all(objects(make()), sort_keys=False, width=120)
    if os.environ.get("MENAGERIE_UPDATE_GOLDEN"):
        GOLDEN.write_text(text)
    assert text == GOLDEN.read_text()


def test_an_account_has_no_wildcard_rights_and_reads_no_secrets(make: Callable[..., Desired]) -> None:
    for leavers in ("keep", "stop"):
        rules = [rule for each in objects(make(leavers=leavers)) for rule in each.get("rules", ())]
        assert rules
        for rule in rules:
            assert "*" not in [*rule["apiGroups"], *rule["resources"], *rule["verbs"]]
            assert not {"secrets", "pods/exec", "serviceaccounts", "serviceaccounts/token"} & {*rule["resources"]}
            assert not {"escalate", "impersonate"} & {*rule["verbs"]}


def test_workloads_may_be_changed_only_if_leavers_are_stopped(make: Callable[..., Desired]) -> None:
    def verbs(leavers: str) -> set[str]:
        (role,) = (each for each in objects(make(TENANCY_SYNC, leavers=leavers)) if each["kind"] == "ClusterRole")
        return {verb for rule in role["rules"] if "deployments" in rule["resources"] for verb in rule["verbs"]}

    assert (verbs("keep"), verbs("stop")) == ({"list"}, {"list", "patch"})


def test_changed_files_roll_the_pods_and_a_password_is_only_in_a_secret(make: Callable[..., Desired]) -> None:
    def pods(desired: Desired) -> list[str]:
        deployments = [each for each in objects(desired) if each["kind"] == "Deployment"]
        return [each["spec"]["template"]["metadata"]["annotations"][CONFIG_HASH] for each in deployments]

    assert pods(make()) == pods(make())
    assert pods(make()) != pods(make(files={"cluster.yaml": "name: lab\n", "hosts.yaml": "hosts: [{}]\n"}))
    for word, secret in (("a word", "directory"), ("b word", "ledger"), ("c word", "web")):
        encoded = base64.b64encode(word.encode()).decode()
        holders = [key_of(each) for each in objects(make()) if encoded in str(each) or word in str(each)]
        assert holders == [("Secret", NAMESPACE, secret)]
        assert word not in repr(make())


def test_files_in_folders_keep_their_paths(make: Callable[..., Desired]) -> None:
    files = {"cluster.yaml": "a", "people/all of them.yaml": "b", "people_all_of_them.yaml": "c"}
    things = {each["kind"]: each for each in objects(make(TENANCY_SYNC, files=files))}
    data, volume = things["ConfigMap"], things["Deployment"]["spec"]["template"]["spec"]["volumes"][0]
    spec = next(each for each in objects(make(TENANCY_SYNC, files=files)) if each["metadata"]["name"] == "spec")
    assert data
    assert {item["path"]: spec["data"][item["key"]] for item in volume["configMap"]["items"]} == files
    assert all(re.fullmatch(r"[-._a-zA-Z0-9]+", key) for key in spec["data"])


def test_removal_covers_all_objects_and_shared_ones_with_the_last_controller(make: Callable[..., Desired]) -> None:
    kinds = tuple(KINDS.values())
    assert set(removable(kinds, whole=True)) == {key_of(each) for each in objects(make())}
    assert removable(kinds, whole=True)[-1] == ("Namespace", "", NAMESPACE)
    one = removable((TENANCY_CAPACITY,), whole=False)
    assert {name for _, _, name in one} & {"spec", "directory", "ledger", "web", NAMESPACE, "tenancy-sync"} == set()


def test_a_spec_without_allocations_needs_no_capacity_controller(make: Callable[..., Desired]) -> None:
    assert needed_kinds(make().settings) == (TENANCY_SYNC, TENANCY_CAPACITY)
    assert needed_kinds(make(allocations=[]).settings) == (TENANCY_SYNC,)
    assert needed_kinds(make(allocations=[]).settings, metering=True) == (TENANCY_SYNC, METERING)
    assert needed_kinds(make(allocations=[]).settings, web=True) == (TENANCY_SYNC, WEB)


def test_each_controller_sees_only_its_own_secret(make: Callable[..., Desired]) -> None:
    pods = {
        each["metadata"]["name"]: each["spec"]["template"]["spec"]
        for each in objects(make())
        if each["kind"] == "Deployment"
    }
    secrets = {
        name: [volume["secret"]["secretName"] for volume in pod["volumes"] if "secret" in volume]
        for name, pod in pods.items()
    }
    assert secrets == {"tenancy-sync": ["directory"], "tenancy-capacity": [], "metering": ["ledger"], "web": ["web"]}


def test_the_ledgers_controller_may_only_read() -> None:
    verbs = {verb for rule in METERING.rules(_ANY_TENANCY) for verb in rule["verbs"]}
    assert verbs == {"list", "watch"}


def test_all_files_that_a_configmap_cannot_hold_are_reported_at_once(
    build: Callable[..., Cluster], tmp_path: Path
) -> None:
    cluster = build({"tenancy": {"directory": {"file": "../people.yaml"}}})
    (tmp_path / "cluster.yaml").write_text("x" * (MOST_BYTES + 1))
    with pytest.raises(RefusedError) as error:
        gather.files_of(cluster.spec, tmp_path / "cluster.yaml")
    lines = str(error.value).splitlines()
    assert len(lines) == 3
    assert "../people.yaml is not below the folder" in lines[0]
    assert "hosts.yaml can't be read" in lines[1]
    assert "a ConfigMap holds 1,000,000; the largest is cluster.yaml" in lines[2]


def test_the_running_image_is_reused_unless_there_are_several() -> None:
    assert gather.image_of(["a", "a"]) == "a"
    with pytest.raises(RefusedError, match="no controller runs yet; name an image with --image"):
        gather.image_of([])
    with pytest.raises(RefusedError, match="controllers run several images: a, b"):
        gather.image_of(["a", "b"])


def test_the_program_imports_no_code_that_builds_clusters_and_only_packages_in_the_image() -> None:
    modules = contents.modules()
    folders = {path.relative_to(ROOT).parts[0] for path in modules}
    assert folders == {"clients", "cluster", "components", "controllers", "etcd", "network", "operations"}
    others = contents.modules(contents.STARTS[:1])
    assert {path.relative_to(ROOT).parts[0] for path in others} == {"clients", "cluster", "controllers", "operations"}
    names = {name.split(".")[0] for path in modules for name in contents.imported(path)}
    foreign = {name for name in names if name not in sys.stdlib_module_names and name not in folders}
    packages = {name.lower().replace("-", "_").replace("pyyaml", "yaml") for name in contents.PYTHON_PACKAGES}
    assert foreign & {"pulumi", "ansible_runner", "paramiko", "boto3", "azure", "google", "cryptography"} == set()
    # Two packages share a module.
    packages = {"arro3" if name in ("arro3_core", "arro3_io") else name for name in packages}
    assert foreign == packages


def test_the_images_requirements_are_complete_and_pinned_by_hash() -> None:
    text = contents.requirements((ROOT / "requirements.lock").read_text())
    names = re.findall(r"^([a-z0-9-]+)==", text, re.MULTILINE)
    assert {
        "arro3-core",
        "arro3-io",
        "kubernetes",
        "ldap3",
        "obstore",
        "pyasn1",
        "pydantic-core",
        "pyyaml",
        "urllib3",
        "certifi",
    } <= set(names)
    assert {"pulumi", "aiohttp", "rich", "typer", "numpy", "highspy", "cryptography"} & set(names) == set()
    assert text.count("--hash=sha256:") >= len(names)
    with pytest.raises(LookupError, match="lacks .*kubernetes"):
        contents.requirements("urllib3==1 \\\n    --hash=sha256:0\n")
    assert PACKAGES


def test_they_run_on_one_pool_by_a_label_that_no_kubelet_can_set(make: Callable[..., Desired]) -> None:
    pods = [each["spec"]["template"]["spec"] for each in objects(make()) if each["kind"] == "Deployment"]
    assert len(pods) == len(KINDS)
    for pod in pods:
        assert pod["nodeSelector"] == {"kubernetes.io/os": "linux", TRUSTED_POOL: "system"}
        assert [each["key"] for each in pod["tolerations"]] == ["research/system"]
