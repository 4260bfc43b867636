"""Clusters loaded together: conflicts are refused, and both files are named."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from cli.running import run
from cluster.check import check
from cluster.check.names import resource_prefix
from cluster.load import check_paths, load_beside
from cluster.spec import Cluster, ClusterSpec
from stacks.gcp import tags

SPECS = Path(__file__).parents[1] / "specs"
TOGETHER = sorted(path for path in SPECS.glob("invalid-*.yaml") if "\n# beside: " in f"\n{path.read_text()}")
IBIS = yaml.safe_load((SPECS / "joined-ibis.yaml").read_text())

Inventories = Callable[..., Path]


@pytest.fixture
def inventories(tmp_path: Path) -> Inventories:
    """A checkout with the clusters one and two; the second has these ranges."""

    def made(**network: str) -> Path:
        for name, changes in (("one", {}), ("two", {"pods": "10.96.0.0/12", "nodes": "10.33.0.0/24", **network})):
            spec = yaml.safe_load((SPECS / "valid-smallest.yaml").read_text())
            spec["name"] = name
            spec["network"] |= changes
            file = tmp_path / "inventories" / name / "cluster.yaml"
            file.parent.mkdir(parents=True)
            file.write_text(yaml.safe_dump(spec))
        return tmp_path

    return made


@pytest.mark.parametrize("path", TOGETHER, ids=lambda path: path.stem)
def test_a_clash_names_both_files(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(SPECS)
    (beside,) = (line.removeprefix("# beside: ") for line in path.read_text().splitlines() if "# beside" in line)
    _, problems = check_paths([Path(beside), Path(path.name)])
    files = (beside, "hosts-jaguar.yaml")
    assert problems
    for problem in problems:
        assert problem.file in (path.name, f"hosts-{path.stem.removeprefix('invalid-')}.yaml")
        assert any(file in problem.message for file in files)


def test_clashes_of_names_addresses_and_peers_are_covered() -> None:
    assert {"-".join(path.stem.split("-")[1:3]) for path in TOGETHER} == {
        *("CFG-017", "NET-001", "INV-001", "VPN-001", "VPN-006", "VPN-008", "PUB-001"),
    }


def test_a_cluster_to_build_is_compared_with_all_inventories(inventories: Inventories) -> None:
    root = inventories(nodes="10.32.0.0/24")
    for name, other in (("one", "two"), ("two", "one")):
        loaded, problems = load_beside(root / "inventories" / name / "cluster.yaml", root)
        assert loaded is None
        assert {problem.code for problem in problems} == {"NET-001"}
        assert all(Path(problem.file).parent.name == name for problem in problems)
        assert all(f"of cluster {other} (" in problem.message for problem in problems)


def test_problems_of_another_cluster_do_not_prevent_building(inventories: Inventories) -> None:
    root = inventories(services="10.200.0.0/30")
    loaded, problems = load_beside(root / "inventories" / "one" / "cluster.yaml", root)
    assert loaded is not None
    assert (loaded.cluster.name, problems) == ("one", [])
    assert load_beside(root / "inventories" / "two" / "cluster.yaml", root)[0] is None


def test_a_file_outside_the_inventories_is_compared_with_none(inventories: Inventories, tmp_path: Path) -> None:
    root = inventories()
    draft = tmp_path / "draft.yaml"
    draft.write_text((root / "inventories" / "one" / "cluster.yaml").read_text())
    loaded, problems = load_beside(draft, root)
    assert loaded is not None
    assert problems == []


@pytest.mark.parametrize("verb", ["up", "preview"])
def test_verbs_that_build_refuse_a_cluster_that_clashes(
    verb: str, inventories: Inventories, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("cli.specs.ROOT", inventories(nodes="10.32.0.0/24"))
    assert run([verb, "one"]) == 2
    assert "error[NET-001] network.nodes 10.32.0.0/24 overlaps network.nodes 10.32.0.0/24 of cluster two (" in (
        capsys.readouterr().err
    )


def ibis(name: str, number: int, pools: dict[str, Any]) -> Cluster:
    spec = copy.deepcopy(IBIS)
    del spec["control_plane"]["public"]
    spec |= {"name": name, "pools": pools}
    spec["network"] |= {"pods": f"10.{number * 32}.0.0/12", "nodes": f"10.{number * 32 + 16}.0.0/16"}
    return Cluster(spec=ClusterSpec.model_validate(spec))


LABELS = st.text("ab-", min_size=1, max_size=5).filter(lambda text: not text.startswith("-") and not text.endswith("-"))


@given(st.tuples(LABELS, LABELS), st.tuples(LABELS, LABELS))
def test_groups_of_two_clusters_are_refused_exactly_if_their_names_in_google_cloud_clash(
    one: tuple[str, str], other: tuple[str, str]
) -> None:
    pool = {"machine": "n2-standard-32", "max": 1}
    first, second = (ibis(name, number, {part: pool}) for number, (name, part) in enumerate((one, other), start=1))
    same = tags.named(first, one[1], "us-central1-a") == tags.named(second, other[1], "us-central1-a")
    clashes = [problem for problem in check(second, [first]) if problem.code == "CFG-017"]
    assert bool(clashes) is (same or one[0] == other[0])


@pytest.mark.parametrize("name", ["9lives", "m9lives", "ibis"])
def test_resource_prefix_matches_the_stack_s_names(name: str) -> None:
    assert tags.named(ibis(name, 1, {}), "api") == f"{resource_prefix(name)}-api"


def test_names_that_only_differ_by_the_required_first_letter_are_refused() -> None:
    problems = check(ibis("9lives", 2, {}), [ibis("m9lives", 1, {})])
    assert [problem.message for problem in problems if problem.code == "CFG-017"] == [
        "in a project of Google Cloud, all resources of 9lives would be named m9lives-…, like those of m9lives"
    ]
    assert [p for p in check(ibis("9lives", 2, {}), [ibis("ibis", 1, {})]) if p.code == "CFG-017"] == []
