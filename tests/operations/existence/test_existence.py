"""The stack's backend decides whether a cluster exists: two checkouts with a common state, and one without any."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cli.verbs.table import chosen, every
from cluster.spec import Cluster
from operations import stack as operation
from tests.cli.terminal import Menagerie
from tests.operations.existence.conftest import HORUS, ROOT, THREE, declared, left
from tests.programs import program


def test_destroy_from_a_fresh_checkout_deletes_what_another_has_built(menagerie: Menagerie, shared: Path) -> None:
    assert left(shared) == len(THREE)
    ran = menagerie("destroy", HORUS, "--yes")
    assert ran.code == 0, ran.err
    assert "horus is deleted" in ran.out
    assert left(shared) == 0


@pytest.mark.parametrize("words", [("status", HORUS), ("kubeconfig", HORUS), ("configure", HORUS, "--yes")])
def test_a_fresh_checkout_finds_the_stack_and_reports_what_it_lacks(
    menagerie: Menagerie, shared: Path, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    reads: list[str] = []

    def outputs(_: str, outputs_: dict[str, object]) -> object:
        reads.append("read")
        raise operation.NotBuiltError("the stack was found")

    monkeypatch.setattr("clients.access.Access.from_stack", outputs)
    ran = menagerie(*words)
    assert reads == ["read"], ran.err
    assert "the stack was found" in ran.err


def test_a_destroy_of_an_unknown_stack_names_the_backend_that_was_searched(
    menagerie: Menagerie, shared: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    other = tmp_path / "empty"
    other.mkdir()
    monkeypatch.setenv("PULUMI_BACKEND_URL", f"file://{other}")
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")  # nothing is there to log in for
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    ran = menagerie("destroy", HORUS, "--yes")
    assert ran.code == 0, ran.err
    assert f"file://{other} has no stack horus; nothing was deleted" in " ".join(ran.out.split())
    assert "nothing is left" not in ran.out
    assert left(shared) == len(THREE)


@pytest.mark.parametrize(
    "words",
    [("destroy", HORUS, "--yes"), ("status", HORUS), ("kubeconfig", HORUS), ("configure", HORUS, "--yes")],
)
def test_an_unreadable_backend_has_its_own_error_and_nothing_is_written(
    menagerie: Menagerie, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, words: tuple[str, ...]
) -> None:
    cli = program("pulumi")
    monkeypatch.setattr("operations.stack.pulumi_cli", lambda _: cli)
    monkeypatch.setenv("PULUMI_BACKEND_URL", f"file://{tmp_path}/not-mounted")
    ran = menagerie(*words)
    assert ran.code == 5, ran.err
    assert "not-mounted, configured by PULUMI_BACKEND_URL, can't be read" in " ".join(ran.err.split())
    assert list(tmp_path.iterdir()) == []


def test_a_stack_in_the_checkout_is_found_although_a_variable_names_another_backend(
    menagerie: Menagerie, shared: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    own = operation.STATE / "horus" / "pulumi"
    shutil.copytree(shared, own)
    (tmp_path / "empty").mkdir()
    monkeypatch.setenv("PULUMI_BACKEND_URL", f"file://{tmp_path / 'empty'}")
    for words in (("destroy", HORUS, "--yes"), ("status", HORUS)):
        ran = menagerie(*words)
        assert ran.code == 2
        assert f"horus has its stack in {own}" in " ".join(ran.err.split())
    assert left(own) == len(THREE)


def test_clusters_without_a_stack_are_found_without_the_cli(menagerie: Menagerie, tmp_path: Path) -> None:
    def no_cli(_: object) -> Path:
        raise AssertionError("the CLI was asked for")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("operations.stack.pulumi_cli", no_cli)
        ran = menagerie("status", "--json")
    assert ran.code == 0, ran.err
    assert {row["state"] for row in ran.json["clusters"]} == {"not built"}
    assert list(tmp_path.iterdir()) == []


def test_a_backend_is_asked_once_for_all_clusters(
    menagerie: Menagerie, shared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs: list[list[str]] = []

    def run(words: list[str], check: bool = False, **how: Any) -> subprocess.CompletedProcess[Any]:
        runs.append(words)
        return subprocess.run(words, check=check, **how)

    # Replace the module instead of patching it: hosts of other tests run programs from this process, too.
    monkeypatch.setattr("stacks.backend.subprocess", SimpleNamespace(**{**vars(subprocess), "run": run}))
    monkeypatch.setattr("operations.stack.access_to", _nothing)
    ran = menagerie("status", "--json")
    assert ran.code == 0, ran.err
    assert [words[1:3] for words in runs] == [["stack", "ls"]]


def _nothing(cluster: Cluster) -> None:
    raise operation.NotBuiltError(cluster.name)


def test_a_preview_of_a_cluster_without_a_stack_leaves_no_record(
    monkeypatch: pytest.MonkeyPatch, shared: Path, horus: Cluster, tmp_path: Path
) -> None:
    declared(monkeypatch)
    monkeypatch.delenv("PULUMI_BACKEND_URL")
    with operation.stack_to_look_at(horus, lambda _: None) as opened:
        assert opened.preview().changes == {"create": len(THREE) + 1}
    assert list((tmp_path / "fresh").iterdir()) == []
    monkeypatch.setenv("PULUMI_BACKEND_URL", f"file://{shared}")
    with operation.stack_to_look_at(horus, lambda _: None) as opened:
        assert opened.preview().changes == {"same": len(THREE) + 1}


READS = (
    "audit lab",
    "autoscaler plan examples/horus",
    "autoscaler plan examples/horus default/pod",
    "autoscaler run examples/horus --once --dry-run",
    "bill",
    "bill examples/horus",
    "bundle examples/horus --fetch --output horus.bundle --dry-run",
    "capacity",
    "capacity examples/horus",
    "ceph render lab --facts docs",
    "check",
    "configure lab --dry-run",
    "controllers apply examples/horus --dry-run",
    "controllers image --output image --dry-run",
    "controllers remove examples/horus --dry-run",
    "etcd backup examples/horus --dry-run",
    "etcd defragment examples/horus main --dry-run",
    "etcd forget examples/horus main --older-than 7d --dry-run",
    "etcd move-leader examples/horus main etcd-main-1 --dry-run",
    "etcd recover-space examples/horus main --dry-run",
    "etcd replace examples/horus main etcd-main-1 --dry-run",
    "etcd restore examples/horus main --dry-run",
    "etcd roll examples/horus --dry-run",
    "explain",
    "explain ETC-001",
    "keys rotate lab encryption --dry-run",
    "kubeconfig examples/horus",
    "list",
    "machines render examples/jaguar --output served --dry-run",
    "mirror push horus.bundle mirror --dry-run",
    "mirror serve horus.bundle",
    "reboot lab --dry-run",
    "repair examples/horus --dry-run",
    "roce plan examples/jaguar",
    "roce test examples/jaguar --dry-run",
    "secret examples/jaguar vpn-sjc1-edge-1 --dry-run",
    "show flows examples/horus",
    "show outputs examples/horus",
    "show policies",
    "show prices examples/horus",
    "show schema",
    "show schema hosts",
    "show topology examples/horus",
    "show vpn examples/jaguar",
    "state move examples/horus --dry-run",
    "status",
    "status examples/horus",
    "status examples/horus backups",
    "status examples/horus controllers",
    "status examples/horus etcd",
    "status examples/horus keys",
    "status examples/horus operations",
    "status examples/horus tenancy",
    "status examples/jaguar machines",
    "status lab links",
    "tenancy sync examples/horus --dry-run",
    "tenancy sync examples/horus --hosts --dry-run",
    "unlock examples/horus --operation 4f1c2a9b --dry-run",
    "upgrade lab --dry-run",
    "verify examples/horus",
    "verify examples/horus --dry-run",
)
"""All read-only verbs, and dry runs of the others."""
ELSEWHERE = frozenset(
    {"autoscaler simulate", "ceph facts", "destroy", "doctor", "expander run", "init", "machines install", "up"}
    | {"validate", "vpn configure", "vpn request", "web"}
)
"""Verbs with separate tests."""
WALK = """
import json, sys
from cli.running import run
for line in json.load(sys.stdin):
    print(f"$ {line}", run(line.split()), file=sys.stderr)
"""


def test_every_verb_is_covered() -> None:
    assert {verb.name for line in READS if (verb := chosen(line.split()))} | ELSEWHERE == {
        verb.name for verb in every()
    }


def test_read_only_verbs_and_dry_runs_write_nothing_for_a_cluster_that_is_not_built(tmp_path: Path) -> None:
    checkout, home = tmp_path / "checkout", tmp_path / "home"
    left_out = shutil.ignore_patterns(".venv", ".git", ".*_cache", "__pycache__", ".menagerie", "tests", ".hypothesis")
    shutil.copytree(ROOT, checkout, symlinks=True, ignore=left_out)
    home.mkdir()
    spec = checkout / "examples" / "horus" / "cluster.yaml"
    spec.write_text(f"{spec.read_text()}autoscaler: {{}}\n")
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "MENAGERIE_CACHE") if name in os.environ}
    cache = os.environ.get("MENAGERIE_CACHE") or str(Path.home() / ".cache" / "menagerie")
    environment = {
        **kept,
        "HOME": str(home),
        "XDG_RUNTIME_DIR": str(home),
        "MENAGERIE_CACHE": cache,
        "PYTHONDONTWRITEBYTECODE": "1",
        "AWS_EC2_METADATA_DISABLED": "true",
    }
    before = tree(tmp_path)
    walked = subprocess.run(
        [sys.executable, "-c", WALK],
        input=json.dumps(READS),
        cwd=checkout,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert walked.returncode == 0, walked.stderr
    assert walked.stderr.count("$ ") == len(READS)
    assert "this is a bug" not in walked.stderr
    assert not any(wrong in walked.stderr for wrong in ("No such option", "Missing", "Usage:")), "a line is no verb's"
    assert tree(tmp_path) == before


def tree(folder: Path) -> dict[str, int]:
    """Return every file and folder below, with its modification time."""
    return {str(each): each.lstat().st_mtime_ns for each in folder.rglob("*") if each != folder}
