"""Problems with regions, zones, machine types and disks that the cloud doesn't have."""

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from cli.running import run
from cluster import catalogue
from cluster.check import check as check_cluster
from cluster.load import check_paths, load_cluster
from cluster.problems import Problem
from cluster.spec import Cloud, Cluster, ClusterSpec

SPECS = Path(__file__).parents[1] / "specs"


@pytest.fixture
def problems(data: dict[str, Any]) -> Callable[..., list[Problem]]:
    """Return problems of the jaguar cluster with changes to its spec."""
    hosts = load_cluster(SPECS / "valid-onprem.yaml").hosts

    def merged(base: Any, changes: Any) -> Any:
        if not (isinstance(base, dict) and isinstance(changes, dict)):
            return changes
        return base | {key: merged(base.get(key), value) for key, value in changes.items()}

    def of(**changes: Any) -> list[Problem]:
        spec = ClusterSpec.model_validate(merged(copy.deepcopy(data), changes))
        return check_cluster(Cluster(spec=spec, hosts=hosts))

    return of


Problems = Callable[..., list[Problem]]


def messages(issues: list[Problem], code: str = "CLD") -> list[str]:
    return [problem.message for problem in issues if problem.code.startswith(code)]


def aws(**changes: Any) -> dict[str, Any]:
    """Return changes that put the jaguar cluster's control plane and etcds in AWS."""
    plane = {"cloud": "aws", "region": "us-east-1", "zones": ["us-east-1a", "us-east-1b", "us-east-1c"]}
    etcd = {"machine": "i4i.2xlarge"}
    return {
        "control_plane": {**plane, "machine": "m7i.4xlarge", **changes},
        "etcd": {"main": etcd, "events": etcd},
    }


@pytest.mark.parametrize(
    ("cloud", "region", "best"),
    [
        ("azure", "useast", "eastus or eastus2"),
        ("azure", "East US", "eastus"),
        ("aws", "us-east1", "us-east-1"),
        ("gcp", "us-east-1", "us-east1"),
        ("gcp", "europe-west-4", "europe-west4"),
    ],
)
def test_an_unknown_region_suggests_the_nearest(cloud: str, region: str, best: str) -> None:
    spec = yaml.safe_load((SPECS / "valid-smallest.yaml").read_text())
    spec["control_plane"] |= {"cloud": cloud, "region": region.lower().replace(" ", "-"), "zones": [1]}
    issues = [p for p in check_cluster(Cluster(spec=ClusterSpec.model_validate(spec))) if p.path.endswith("region")]
    assert [problem.code for problem in issues] == ["CLD-001"]
    assert f"did you mean {best}" in issues[0].message


def test_an_unknown_region_without_similar_ones_suggests_none(problems: Problems) -> None:
    (problem,) = (p for p in problems(control_plane={"region": "x"}) if p.code == "CLD-001")
    assert problem.message == 'azure has no region "x"'
    assert problem.hint.startswith("write a region of azure; or pass --allow-unknown")


def test_a_region_with_unknown_zones_accepts_any(problems: Problems) -> None:
    assert messages(problems(control_plane={"region": "taiwannorth", "zones": [1, 2, 3]}), "CLD-001") == []


def test_zone_letters_of_aws_are_not_checked_against_machine_types(problems: Problems) -> None:
    """m7i isn't in use1-az3, which is us-east-1e for some and us-east-1a for others."""
    assert messages(problems(**aws())) == []
    assert len(messages(problems(**aws(zones=["use1-az3", "use1-az1", "use1-az2"])))) == 1


def test_only_zones_with_hosts_are_checked(problems: Problems) -> None:
    """Two API servers fill the first two zones; members fill all three."""
    zones = ["use1-az1", "use1-az2", "use1-az3"]
    assert messages(problems(**aws(zones=zones))) == []
    (message,) = messages(problems(**aws(zones=zones, api_servers=3)))
    assert message.startswith(
        "m7i.4xlarge isn't offered in aws/us-east-1 zone use1-az3; offered there in zones use1-az1"
    )


def test_a_pool_needs_only_one_zone_that_offers_its_machines(problems: Problems) -> None:
    """Two of the region's three zones offer them."""
    assert (
        messages(
            problems(
                pools={"cloud": {"machine": "Standard_ND96isr_H100_v5", "max": 4, "image": "apes:gpu:debian-12:1.0.0"}}
            )
        )
        == []
    )


def test_gpus_without_a_driver_are_refused_in_production_unless_the_cluster_installs_one(problems: Problems) -> None:
    gpu: dict[str, Any] = {"machine": "Standard_ND96isr_H100_v5", "max": 4}
    for more, severity in (
        ({}, ["error"]),
        ({"allow_no_driver": True}, []),
        ({"image": "apes:gpu:debian-12:1.0.0"}, []),
    ):
        severities = [p.severity for p in problems(pools={"cloud": gpu | more}) if "driver" in p.message]
        assert severities == severity
    develop = problems(profile="development", pools={"cloud": gpu})
    assert [p.severity for p in develop if "driver" in p.message] == ["warning"]


def test_a_machine_type_of_another_cloud_suggests_its_counterpart(problems: Problems) -> None:
    issues = [p for p in problems(pools={"gpu2": {"machine": "a2-highgpu-1g", "max": 4}}) if p.code == "CLD-002"]
    assert [problem.message for problem in issues] == ["a2-highgpu-1g is a gcp size, but this pool is in azure"]
    assert issues[0].hint == "write Standard_NC24ads_A100_v4"
    etcd = [p for p in problems(etcd={"main": {"machine": "i4i.2xlarge"}}) if p.code == "CLD-002"]
    assert [(p.message, p.hint) for p in etcd] == [
        ("i4i.2xlarge is an aws size, but this etcd is in azure", "write Standard_L8as_v3")
    ]


def test_a_machine_type_known_only_by_name_is_accepted(problems: Problems) -> None:
    name = catalogue.of(Cloud.AZURE).others.amd64[0]
    assert messages(problems(control_plane={"machine": name})) == []


def test_the_machine_type_of_an_etcd_on_the_other_s_hosts_is_not_checked(problems: Problems) -> None:
    """It would otherwise be refused for its name, and for its lack of a local disk."""
    two_disks = {"machine": "Standard_L16s_v3"}
    issues = problems(etcd={"main": two_disks, "events": {"hosts": "main", "machine": "Standard_D15_v9"}})
    assert messages(issues) == messages(issues, "ETC-008") == []
    issues = problems(etcd={"main": {"machine": "Standard_D16ds_v5"}, "events": {"hosts": "main"}})
    assert messages(issues, "ETC-008") == [
        f"etcd.{role} disk is local-nvme, but Standard_D16ds_v5 has no local NVMe disk" for role in ("events", "main")
    ]


def test_a_lab_is_not_checked_against_a_catalogue() -> None:
    _, issues = check_paths([SPECS / "valid-smallest.yaml"])
    assert issues == []


UNKNOWN = sorted(SPECS.glob("invalid-CLD-00[13]-*.yaml")) + [
    SPECS / f"invalid-{name}.yaml" for name in ("CLD-002-unknown", "ETC-008-unknown")
]
NOT_UNKNOWN = [
    SPECS / f"invalid-{name}.yaml"
    for name in ("CLD-002-other-cloud", "CLD-006-arm", "ETC-008-network-disk", "ETC-001-two")
]


@pytest.mark.parametrize("path", UNKNOWN, ids=lambda path: path.stem)
def test_entries_missing_from_the_catalogue_can_be_allowed(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    loaded, issues = check_paths([path], allow_unknown=True)
    assert [one.path for one in loaded] == [path]
    assert issues
    assert {problem.severity for problem in issues} == {"warning"}
    assert run(["check", str(path), "--allow-unknown"]) == 0
    assert f"{path.name}:{issues[0].line}" in capsys.readouterr().err


@pytest.mark.parametrize("path", NOT_UNKNOWN, ids=lambda path: path.stem)
def test_allow_unknown_changes_no_other_error(path: Path) -> None:
    loaded, issues = check_paths([path], allow_unknown=True)
    assert loaded == []
    assert any(problem.is_error for problem in issues)
    assert run(["check", str(path), "--allow-unknown"]) == 2


@pytest.mark.parametrize("verb", ["up", "preview"])
def test_verbs_that_build_accept_unknown_entries_only_with_the_flag(
    verb: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(SPECS / "invalid-CLD-002-unknown.yaml")
    assert run([verb, path]) == 2
    assert "error[CLD-002]" in capsys.readouterr().err
    run([verb, path, "--allow-unknown"])
    output = capsys.readouterr().err
    assert "warning[CLD-002]" in output
    assert "isn't ready to build" in output
