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


@pytest.mark.timeout(1200)
def test_unedited_first_specs_of_every_cloud_pass_every_stage(pulumi: Path, tmp_path: Path) -> None:
    """With GPUs, which include the specs without; and a site connected to AWS."""
    paths = []
    for name, cloud in (("aws", Cloud.AWS), ("azure", Cloud.AZURE), ("gcp", Cloud.GCP), ("site", Cloud.AWS)):
        prepared = prepare(Request(name, cloud, name == "site", gpu="h100"), tmp_path)
        write(prepared)
        paths.append(prepared.folder / "cluster.yaml")
    assert failed(pulumi, paths) == {path.parent.name: [] for path in paths}


@pytest.mark.timeout(1200)
def test_the_larger_examples_pass_every_stage(pulumi: Path) -> None:
    names = ["horus", "ibis", "jaguar"]
    assert failed(pulumi, [ROOT / "examples" / name / "cluster.yaml" for name in names]) == {name: [] for name in names}
