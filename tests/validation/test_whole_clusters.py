"""`validate` with the real programs: first specs as `init` writes them, and the larger examples. tests/stacks covers small ones."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from cluster.load import check_paths
from cluster.spec import Cloud
from cluster.starter import Request
from operations.init import prepare, write
from stacks.validation import fleet
from stacks.validation.fleet import Options, Subject
from stacks.validation.model import ClusterResult, Outcome, Stage
from tests.validation.conftest import empty

ROOT = Path(__file__).resolve().parents[2]


class Watch:
    """Hears of stages, and counts the clusters that run at the same time."""

    def __init__(self) -> None:
        self.most = 0
        self._running: set[str] = set()
        self._lock = threading.Lock()

    def tell(self, name: str, _stage: Stage, _detail: str) -> None:
        with self._lock:
            self._running.add(name)
            self.most = max(self.most, len(self._running))

    def done(self, result: ClusterResult) -> None:
        with self._lock:
            self._running.discard(result.cluster)


def failed(pulumi: Path, paths: list[Path], watch: Watch | None = None) -> dict[str, list[str]]:
    """Return cluster -> the stages that did not pass, with their results."""
    loaded, problems = check_paths(paths)
    assert [str(problem) for problem in problems] == []
    subjects = [Subject(entry.cluster.name, entry.path, entry, ()) for entry in loaded]
    watch = watch or Watch()
    report = fleet.validate(subjects, Options(pulumi, jobs=2), watch.tell, watch.done)
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
def test_unedited_first_specs_of_every_cloud_pass_every_stage_and_leave_nothing(
    pulumi: Path,
    temporary: Path,
    hostile: Callable[[], AbstractContextManager[object]],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    clouds = {"site": Cloud.AWS, "azure": Cloud.AZURE, "gcp": Cloud.GCP}
    folder, watch = tmp_path_factory.mktemp("first"), Watch()
    paths = [first_spec(name, cloud, folder) for name, cloud in clouds.items()]
    with hostile():
        assert failed(pulumi, paths, watch) == {name: [] for name in clouds}
    assert (watch.most, empty(temporary)) == (2, True)


@pytest.mark.soak
@pytest.mark.timeout(1200)
def test_an_unedited_first_spec_of_aws_without_a_site_passes_every_stage(pulumi: Path, tmp_path: Path) -> None:
    assert failed(pulumi, [first_spec("aws", Cloud.AWS, tmp_path)]) == {"aws": []}


@pytest.mark.soak
@pytest.mark.timeout(1200)
def test_the_larger_examples_pass_every_stage(pulumi: Path) -> None:
    names = ["horus", "ibis", "jaguar"]
    assert failed(pulumi, [ROOT / "examples" / name / "cluster.yaml" for name in names]) == {name: [] for name in names}
