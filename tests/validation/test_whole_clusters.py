"""`validate` with the real programs: first specs as `init` writes them, and the larger examples. tests/stacks covers small ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from cluster.load import check_paths
from cluster.spec import Cloud
from cluster.starter import Request
from operations.init import prepare, write
from stacks.validation import fleet
from stacks.validation.fleet import Options, Subject
from stacks.validation.model import Outcome, Stage

ROOT = Path(__file__).resolve().parents[2]


def failed(pulumi: Path, paths: list[Path]) -> dict[str, list[str]]:
    """Return cluster -> the stages that did not pass, with their results."""
    loaded, problems = check_paths(paths)
    assert [str(problem) for problem in problems] == []
    subjects = [Subject(entry.cluster.name, entry.path, entry, ()) for entry in loaded]
    report = fleet.validate(subjects, Options(pulumi, jobs=2), lambda *_: None, lambda _: None)
    assert [len(cluster.stages) for cluster in report.clusters] == [len(Stage)] * len(paths)
    return {
        cluster.cluster: [f"{stage.stage}: {stage}" for stage in cluster.stages if stage.outcome is not Outcome.PASSED]
        for cluster in report.clusters
    }


def first_spec(name: str, cloud: Cloud, folder: Path) -> Path:
    """Return the spec of a new cluster with GPUs, which includes what one without has; `site` has them at a site."""
    prepared = prepare(Request(name, cloud, name == "site", gpu="h100"), folder)
    write(prepared)
    return prepared.folder / "cluster.yaml"


@pytest.mark.timeout(1200)
def test_unedited_first_specs_of_every_cloud_pass_every_stage(pulumi: Path, tmp_path: Path) -> None:
    clouds = {"site": Cloud.AWS, "azure": Cloud.AZURE, "gcp": Cloud.GCP}
    paths = [first_spec(name, cloud, tmp_path) for name, cloud in clouds.items()]
    assert failed(pulumi, paths) == {name: [] for name in clouds}


@pytest.mark.soak
@pytest.mark.timeout(1200)
def test_an_unedited_first_spec_of_aws_without_a_site_passes_every_stage(pulumi: Path, tmp_path: Path) -> None:
    assert failed(pulumi, [first_spec("aws", Cloud.AWS, tmp_path)]) == {"aws": []}


@pytest.mark.soak
@pytest.mark.timeout(1200)
def test_the_larger_examples_pass_every_stage(pulumi: Path) -> None:
    names = ["horus", "ibis", "jaguar"]
    assert failed(pulumi, [ROOT / "examples" / name / "cluster.yaml" for name in names]) == {name: [] for name in names}
