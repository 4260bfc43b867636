"""Small stacks under the real engine, and a report that needs no run."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from cluster.errors import FailedError
from cluster.load import load_cluster
from cluster.spec import Cluster
from stacks.validation import fleet
from stacks.validation.model import ClusterResult, Finding, Outcome, Report, Stage, StageResult, skipped

ROOT = Path(__file__).resolve().parents[2]
SPEC = ROOT / "tests" / "specs" / "valid-aws.yaml"

HOSTILE = {
    "PULUMI_BACKEND_URL": "s3://the-users-own",
    "PULUMI_CONFIG_PASSPHRASE_FILE": "/nowhere/at/all",
    "PULUMI_ACCESS_TOKEN": "pul-0000",
    "PULUMI_STACK": "theirs",
    "PULUMI_DEBUG_PROVIDERS": "aws:1",
    "AWS_REGION": "mars-north-1",
    "AWS_PROFILE": "theirs",
    "GOOGLE_PROJECT": "theirs",
    "ARM_SUBSCRIPTION_ID": "theirs",
    "https_proxy": "http://127.0.0.1:9",
    "http_proxy": "http://127.0.0.1:9",
}
"""Variables that a user's environment may contain."""


@pytest.fixture(scope="session")
def pulumi() -> Path:
    try:
        return fleet.engine()
    except FailedError:
        pytest.skip("pulumi is not built; `make lab` and `make test` build it")


@pytest.fixture(scope="session")
def lemur() -> Cluster:
    return load_cluster(SPEC)


@contextmanager
def _hostile() -> Iterator[dict[str, str]]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in HOSTILE.items():
            patch.setenv(name, value)
        yield dict(os.environ)


@pytest.fixture(scope="session")
def hostile() -> Callable[[], AbstractContextManager[dict[str, str]]]:
    """hostile(): an environment that would break everything, for a block; yields the variables before it."""
    return _hostile


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder for temporary files."""
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path


def empty(folder: Path) -> bool:
    """Whether validation has left nothing among the temporary files."""
    return not list(folder.glob("menagerie-validate-*"))


LOSS = Finding(
    "loses-data",
    "aws:ebs/volume:Volume lemur-etcd-main-0 would be replaced or deleted (by availabilityZone); a disk would be lost",
    "make the change in place, or let the program ignore it (ignore_changes)",
    resource="urn:pulumi:lemur::menagerie::menagerie:aws:Etcd$aws:ebs/volume:Volume::lemur-etcd-main-0",
    path=("etcd",),
    file="inventories/lemur/cluster.yaml",
    line=8,
    column=1,
)
PROBLEM = Finding(
    "NET-001",
    "network.pods and network.services share 10.0.0.0/24\n    services: <all of it> & more\x07",
    "write network.services: 10.1.0.0/16",
    file="inventories/new one/cluster.yaml",
    line=12,
    column=9,
)
NOTE = Finding(
    "unproven",
    "simcloud has no rules for aws:ebs/volume:Volume (3 resources)",
    "",
    "note",
    file="inventories/lemur/cluster.yaml",
)
WARNING = Finding("CFG-019", "nothing acts on it yet", "", "warning", file="inventories/lemur/cluster.yaml", line=3)


@pytest.fixture(scope="session")
def report() -> Report:
    """A cluster that fails in one stage, one with a wrong spec, and one whose cloud is not offered."""
    passed = [
        StageResult(Stage.SPEC, Outcome.PASSED, "", 0.0, (WARNING,)),
        StageResult(Stage.PREVIEW, Outcome.PASSED, "52 resources planned", 1.5),
        StageResult(Stage.UP, Outcome.PASSED, "40 resources in the cloud, 52 in all", 2.25, (NOTE,)),
        StageResult(Stage.POLICIES, Outcome.PASSED, "1 rules over 52 resources", 0.0),
        StageResult(Stage.AGAIN, Outcome.PASSED, "nothing to change", 1.0),
        StageResult(Stage.UPDATE, Outcome.FAILED, "one more API server: 4 resources change", 2.0, (LOSS,)),
        StageResult(Stage.DRIFT, Outcome.PASSED, "9 of 9 changes reported", 1.0),
        StageResult(Stage.DESTROY, Outcome.PASSED, "52 deleted", 1.0),
    ]
    wrong = [StageResult(Stage.SPEC, Outcome.FAILED, "", 0.0, (PROBLEM,))]
    spec = StageResult(Stage.SPEC, Outcome.PASSED)
    return Report(
        (
            ClusterResult("lemur", "aws", "inventories/lemur/cluster.yaml", tuple(passed), 9.0),
            ClusterResult(
                "new one",
                "",
                "inventories/new one/cluster.yaml",
                (*wrong, *skipped(tuple(Stage)[1:], "the spec is wrong")),
            ),
            ClusterResult(
                "ibis",
                "gcp",
                "inventories/ibis/cluster.yaml",
                (spec, *skipped(tuple(Stage)[1:], "not offered yet")),
                0.5,
            ),
        ),
        9.5,
    )
