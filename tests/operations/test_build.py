"""What `up`, `up --dry-run` and `destroy` do with the results of their parts, which are fakes."""

from __future__ import annotations

from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest

from clients.access import runtime_dir
from cluster.errors import LockedError, RefusedError, UnreachableError
from cluster.load import load_cluster
from cluster.outputs import BucketOutput
from inventories.report import Failure, HostReport, RunReport
from operations import build
from operations.build import Selection
from operations.record import one_operation, read_ledger
from operations.upgrade import guard
from stacks.automation import Summary
from stacks.errors import PassphraseError, StackError, StackLockedError
from tests.operations.conftest import outputs

ROOT = Path(__file__).parents[2]
UNREACHABLE = RunReport(
    {"worker-1": HostReport(0, 0, 0, 1, 0, 0.0)}, (Failure("worker-1", "base", "Gathers", "no route to host", True),)
)


KEYS = [f"operator_{name}" for name in ("certificate", "key", "etcd_certificate", "etcd_key")]


class Quiet:
    def __init__(self):
        self.details = []

    @contextmanager
    def step(self, _):
        yield

    def detail(self, text):
        self.details.append(text)


@pytest.fixture(scope="module")
def lab():
    return load_cluster(ROOT / "inventories" / "lab" / "cluster.yaml")


@pytest.fixture
def stack(monkeypatch, tmp_path):
    """The opened stack; a test sets what the engine does."""
    opened = SimpleNamespace(
        preview=lambda **_: Summary({"same": 1}, 0.0), outputs=dict, values=dict, configure=nothing, unset=nothing
    )
    monkeypatch.setattr(build, "open_stack", lambda *_: opened)
    monkeypatch.setattr(build, "stack_to_look_at", lambda *_: nullcontext(opened))
    monkeypatch.setattr(build, "STATE", tmp_path)
    # A destroy deletes this, and there may be a lab of this name.
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "run"))
    return opened


def nothing(*_):
    pass


def raises(error):
    def act(**_):
        raise error

    return act


@pytest.mark.parametrize("selection", [Selection(limit="worker-9"), Selection(tags=("neighbors",))])
def test_a_selection_that_matches_nothing_is_refused_before_anything_starts(lab, selection):
    with pytest.raises(RefusedError, match="INV-006"):
        build.refuse(lab, selection)


@pytest.mark.parametrize(
    ("selection", "last"),
    [
        (Selection(), "add-ons"),
        (Selection(limit="worker-1"), "nodes Ready"),
        (Selection(tags=("base", "kubelet")), "nodes Ready"),
        (Selection(tags=("neighbours",)), "workers"),
    ],
)
def test_a_limited_run_does_not_wait_for_what_needs_the_whole_cluster(selection, last):
    assert selection.steps[-1] == last


def test_up_of_another_release_is_refused_before_anything_is_prepared(lab, stack, monkeypatch):
    prepared = []
    stack.outputs = lambda: {"outputs": "some"}
    monkeypatch.setattr(build.Access, "from_stack", lambda *_: None)
    monkeypatch.setattr(build, "_prepare", lambda *_: prepared.append(1))
    monkeypatch.setattr(guard, "other_release", lambda cluster, access: "run ./menagerie upgrade lab")
    with pytest.raises(RefusedError, match="menagerie upgrade lab"):
        build.up(lab, Quiet())
    assert prepared == []


def test_a_preview_of_another_release_says_that_up_would_refuse(lab, stack, monkeypatch):
    stack.outputs = lambda: {"outputs": "some"}
    monkeypatch.setattr(build.Access, "from_stack", lambda *_: None)
    monkeypatch.setattr(build, "_configure", raises(AssertionError("compared with programs that there are not yet")))
    monkeypatch.setattr(build, "other_release", lambda cluster, access: "run ./menagerie upgrade lab")
    assert build.preview(lab, Quiet()).to_json()["other_release"] == "run ./menagerie upgrade lab"


def test_a_preview_with_an_unreachable_worker_is_not_a_success(lab, stack, monkeypatch):
    monkeypatch.setattr(build.Access, "from_stack", lambda *_: None)
    monkeypatch.setattr(build, "other_release", lambda *_: "")
    monkeypatch.setattr(build, "_configure", lambda *_, check: UNREACHABLE)
    with pytest.raises(UnreachableError, match="no route to host") as raised:
        build.preview(lab, Quiet())
    assert raised.value.code == "workers-unreachable"


@pytest.mark.parametrize("error", [StackError("incorrect passphrase"), PassphraseError("no passphrase")])
@pytest.mark.parametrize("fails", ["outputs", "destroy"])
def test_a_lab_that_the_engine_can_not_delete_is_removed_and_the_engines_error_is_reported(
    lab, stack, monkeypatch, tmp_path, error, fails
):
    cleaned, said = [], []
    setattr(stack, fails, raises(error))
    monkeypatch.setattr(build.lab, "clean", cleaned.append)
    (tmp_path / "lab").mkdir()
    with pytest.raises(type(error), match=str(error)) as raised:
        build.destroy(lab, Quiet(), report=said.append)
    assert raised.value is error
    assert (len(cleaned), (tmp_path / "lab").exists()) == (1, False)
    assert said[-1].endswith("everything else of the lab was removed")


def test_a_cluster_in_a_cloud_that_the_engine_can_not_delete_is_not_forgotten(in_azure, stack, did, tmp_path):
    stack.destroy = raises(StackError("the cloud says no"))
    (tmp_path / "lab").mkdir()
    with pytest.raises(StackError, match="the cloud says no"):
        build.destroy(in_azure, Quiet(), with_data=True)
    assert (tmp_path / "lab").exists()


def test_a_lab_is_left_alone_while_another_run_holds_it(lab, stack, monkeypatch):
    cleaned = []
    stack.destroy = raises(StackLockedError("process 7"))
    monkeypatch.setattr(build.lab, "clean", cleaned.append)
    with pytest.raises(StackLockedError):
        build.destroy(lab, Quiet())
    assert cleaned == []


@pytest.fixture
def in_azure(request):
    place = {"cloud": "azure", "region": "eastus2"}
    return request.getfixturevalue("build")({"control_plane": place, "network": {"nodes": "10.77.0.0/16"}})


@pytest.fixture
def did(stack) -> list[str]:
    """Record the actions on the stack of a cluster with one protected disk, in order."""
    done: list[str] = []

    def act(name, result):
        return lambda **_: done.append(name) or result

    stack.protected = lambda: ["urn:pulumi:lab::menagerie::azure-native:compute:Disk::etcd-main-1"]
    stack.remove_protection, stack.destroy = act("let go", None), act("destroy", Summary({"delete": 1}, 0.0))
    return done


def test_data_in_a_cloud_is_kept_unless_its_deletion_is_requested(in_azure, did):
    with pytest.raises(RefusedError, match=r"(?s)etcd-main-1.*Nothing was changed.*destroy lab --with-data"):
        build.destroy(in_azure, Quiet())
    assert did == []


def test_a_dry_run_of_destroy_refuses_the_same_lists_what_would_be_deleted_and_changes_nothing(in_azure, did, stack):
    with pytest.raises(RefusedError):
        build.to_destroy(in_azure, Quiet())
    urn = "urn:pulumi:lab::menagerie::azure-native:compute:Disk::etcd-main-1"
    stack.deployment = lambda: {"resources": [{"urn": urn, "type": "azure-native:compute:Disk", "protect": True}]}
    plan = build.to_destroy(in_azure, Quiet(), with_data=True)
    assert [(change.action.value, change.name) for change in plan.changes] == [("delete", "etcd-main-1")]
    assert did == []


def test_with_data_the_protection_is_removed_first(in_azure, did):
    kubeconfig = runtime_dir("lab") / "kubeconfig"
    kubeconfig.touch()
    assert build.destroy(in_azure, Quiet(), with_data=True).changes == {"delete": 1}
    assert did == ["let go", "destroy"]
    assert not kubeconfig.exists()


def test_a_bucket_that_the_cloud_will_not_delete_yet_is_reported_before_the_rest_is_deleted(in_azure, did, stack):
    logs = BucketOutput(kind="azure", name="audit-logs", account="a", locked_days=30)
    records = BucketOutput(kind="azure", name="artefacts", account="a")
    outputs_ = outputs().model_copy(update={"buckets": {"audit-logs": logs, "records": records}})
    stack.outputs = lambda: {"outputs": outputs_.model_dump_json(), **dict.fromkeys(KEYS, "")}
    build.destroy(in_azure, Quiet(), with_data=True, report=did.append)
    lines = [line for line in did if "keeps" in line]
    assert len(lines) == 1
    assert "bucket audit-logs keeps audit-logs for 30 days" in lines[0]
    assert did.index("let go") < did.index(lines[0]) < did.index("destroy")


def test_a_destroy_is_refused_while_another_operation_holds_the_cluster(in_azure, did):
    with one_operation(in_azure, None, "etcd restore", "main"), pytest.raises(LockedError, match="etcd restore main"):
        build.destroy(in_azure, Quiet(), with_data=True)
    assert did == []


def test_the_record_of_who_destroyed_a_cluster_is_kept(in_azure, did):
    build.destroy(in_azure, Quiet(), with_data=True)
    past = read_ledger("lab", None).past
    assert [(each.what, each.result) for each in past] == [("destroy --with-data", "done")]


def test_an_up_is_refused_while_another_operation_holds_the_cluster(lab, stack, monkeypatch):
    monkeypatch.setattr(build, "_prepare", lambda *_: None)
    stack.up = raises(AssertionError("the stack was touched"))
    with one_operation(lab, None, "destroy"), pytest.raises(LockedError, match='"destroy"'):
        build.up(lab, Quiet())


def test_the_limits_of_an_up_are_shown_as_command_line_options():
    assert Selection().options == ""
    assert Selection("rack r1", ("base", "kubelet")).options == "--limit 'rack r1' --tags base,kubelet"
