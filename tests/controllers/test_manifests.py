"""The objects of the controllers as text, and what must be true of them whatever the spec says."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from clients.kube import key_of
from cluster.errors import RefusedError
from cluster.pools import TRUSTED_POOL, Taint, TaintEffect
from cluster.project import ROOT
from cluster.spec import Cluster
from controllers import contents, gather
from controllers.apply import removable
from controllers.image import PACKAGES
from controllers.kinds import KINDS, TENANCY_CAPACITY, TENANCY_SYNC, Kind, wanted
from controllers.manifests import CONFIG_HASH, MOST_BYTES, NAMESPACE, Wanted, objects

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
def made(build: Callable[..., Cluster]) -> Callable[..., Wanted]:
    def make(*kinds: Kind, files: dict[str, str] | None = None, **tenancy: Any) -> Wanted:
        settings = build({"tenancy": {**TENANCY, **tenancy}}).spec.tenancy
        assert settings
        texts = {"cluster.yaml": "name: lab\n", "hosts.yaml": "hosts: []\n"} if files is None else files
        taints = (Taint(key="research/system", effect=TaintEffect.NO_SCHEDULE),)
        known = kinds or tuple(KINDS.values())
        return Wanted("registry.test/m@sha256:0", texts, settings, known, "system", taints, {"ldap": "a word"})

    return make


def test_the_objects_are_what_was_reviewed(made: Callable[..., Wanted]) -> None:
    """MENAGERIE_UPDATE_GOLDEN=1 rewrites them; review the difference."""
    text = yaml.safe_dump_all(objects(made()), sort_keys=False, width=120)
    if os.environ.get("MENAGERIE_UPDATE_GOLDEN"):
        GOLDEN.write_text(text)
    assert text == GOLDEN.read_text()


def test_an_account_has_rights_to_nothing_by_wildcard_and_reads_no_secrets(made: Callable[..., Wanted]) -> None:
    for leavers in ("keep", "stop"):
        rules = [rule for each in objects(made(leavers=leavers)) for rule in each.get("rules", ())]
        assert rules
        for rule in rules:
            assert "*" not in [*rule["apiGroups"], *rule["resources"], *rule["verbs"]]
            assert not {"secrets", "pods/exec", "serviceaccounts", "serviceaccounts/token"} & {*rule["resources"]}
            assert not {"escalate", "impersonate"} & {*rule["verbs"]}


def test_workloads_may_be_changed_only_where_leavers_are_stopped(made: Callable[..., Wanted]) -> None:
    def verbs(leavers: str) -> set[str]:
        (role,) = (each for each in objects(made(TENANCY_SYNC, leavers=leavers)) if each["kind"] == "ClusterRole")
        return {verb for rule in role["rules"] if "deployments" in rule["resources"] for verb in rule["verbs"]}

    assert (verbs("keep"), verbs("stop")) == ({"list"}, {"list", "patch"})


def test_other_files_are_other_pods_and_a_password_is_in_a_secret_alone(made: Callable[..., Wanted]) -> None:
    def pods(wanted_: Wanted) -> list[str]:
        found = [each for each in objects(wanted_) if each["kind"] == "Deployment"]
        return [each["spec"]["template"]["metadata"]["annotations"][CONFIG_HASH] for each in found]

    assert pods(made()) == pods(made())
    assert pods(made()) != pods(made(files={"cluster.yaml": "name: lab\n", "hosts.yaml": "hosts: [{}]\n"}))
    holders = [each["kind"] for each in objects(made()) if "YSB3b3Jk" in str(each) or "a word" in str(each)]
    assert holders == ["Secret"]
    assert "a word" not in repr(made())


def test_files_in_folders_come_back_at_their_places(made: Callable[..., Wanted]) -> None:
    files = {"cluster.yaml": "a", "people/all of them.yaml": "b", "people_all_of_them.yaml": "c"}
    things = {each["kind"]: each for each in objects(made(TENANCY_SYNC, files=files))}
    data, volume = things["ConfigMap"], things["Deployment"]["spec"]["template"]["spec"]["volumes"][0]
    spec = next(each for each in objects(made(TENANCY_SYNC, files=files)) if each["metadata"]["name"] == "spec")
    assert data
    assert {item["path"]: spec["data"][item["key"]] for item in volume["configMap"]["items"]} == files
    assert all(re.fullmatch(r"[-._a-zA-Z0-9]+", key) for key in spec["data"])


def test_removing_names_all_that_was_made_and_shared_things_with_the_last(made: Callable[..., Wanted]) -> None:
    kinds = tuple(KINDS.values())
    assert set(removable(kinds, whole=True)) == {key_of(each) for each in objects(made())}
    assert removable(kinds, whole=True)[-1] == ("Namespace", "", NAMESPACE)
    one = removable((TENANCY_CAPACITY,), whole=False)
    assert {name for _, _, name in one} & {"spec", "directory", NAMESPACE, "tenancy-sync"} == set()


def test_a_spec_without_allocations_needs_no_controller_of_hosts(made: Callable[..., Wanted]) -> None:
    assert wanted(made().settings) == (TENANCY_SYNC, TENANCY_CAPACITY)
    assert wanted(made(allocations=[]).settings) == (TENANCY_SYNC,)


def test_files_that_a_configmap_cannot_take_are_told_all_at_once(build: Callable[..., Cluster], tmp_path: Path) -> None:
    cluster = build({"tenancy": {"directory": {"file": "../people.yaml"}}})
    (tmp_path / "cluster.yaml").write_text("x" * (MOST_BYTES + 1))
    with pytest.raises(RefusedError) as told:
        gather.files_of(cluster.spec, tmp_path / "cluster.yaml")
    lines = str(told.value).splitlines()
    assert len(lines) == 3
    assert "../people.yaml is not below the folder" in lines[0]
    assert "hosts.yaml can't be read" in lines[1]
    assert "a ConfigMap takes 1,000,000: cluster.yaml is the largest" in lines[2]


def test_the_image_that_runs_is_taken_again_and_two_are_not_chosen_between() -> None:
    assert gather.image_of(["a", "a"]) == "a"
    with pytest.raises(RefusedError, match="no controller runs yet; name one with --image"):
        gather.image_of([])
    with pytest.raises(RefusedError, match="several images run: a, b"):
        gather.image_of(["a", "b"])


def test_the_program_imports_none_of_what_builds_clusters_and_only_packages_that_the_image_has() -> None:
    modules = contents.modules()
    folders = {path.relative_to(ROOT).parts[0] for path in modules}
    assert folders == {"clients", "cluster", "controllers", "operations"}
    names = {name.split(".")[0] for path in modules for name in contents.imported(path)}
    foreign = {name for name in names if name not in sys.stdlib_module_names and name not in folders}
    packages = {name.lower().replace("-", "_").replace("pyyaml", "yaml") for name in contents.PYTHON_PACKAGES}
    assert foreign == packages


def test_the_requirements_of_the_image_are_pinned_by_hash_and_closed() -> None:
    text = contents.requirements((ROOT / "requirements.lock").read_text())
    names = re.findall(r"^([a-z0-9-]+)==", text, re.MULTILINE)
    assert {"kubernetes", "ldap3", "pyasn1", "pydantic-core", "pyyaml", "urllib3", "certifi"} <= set(names)
    assert {"pulumi", "aiohttp", "rich", "typer", "jinja2"} & set(names) == set()
    assert text.count("--hash=sha256:") >= len(names)
    with pytest.raises(LookupError, match="has no kubernetes"):
        contents.requirements("urllib3==1 \\\n    --hash=sha256:0\n")
    assert PACKAGES


def test_they_run_on_one_pool_that_no_kubelet_can_say_it_is_of(made: Callable[..., Wanted]) -> None:
    pods = [each["spec"]["template"]["spec"] for each in objects(made()) if each["kind"] == "Deployment"]
    assert len(pods) == len(KINDS)
    for pod in pods:
        assert pod["nodeSelector"] == {"kubernetes.io/os": "linux", TRUSTED_POOL: "system"}
        assert [each["key"] for each in pod["tolerations"]] == ["research/system"]
