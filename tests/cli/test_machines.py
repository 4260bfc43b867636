"""`machines`: output, questions and refusals, without BMCs. tests/provisioning runs the verbs with real ones."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from cluster.spec import Cluster
from operations import bmcs
from operations import machines as operation
from operations.provisioning import install
from operations.provisioning.bmc import MachineReport
from operations.provisioning.machines import SiteMachine
from operations.provisioning.redfish import BmcError, BmcErrorKind
from tests.cli.terminal import Menagerie
from tests.provisioning.support import cluster as built

LYNX = str(Path(__file__).parents[1] / "specs" / "valid-provisioning.yaml")
VERBS = ("render", "install")


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, Any]:
    """BMCs' answers by the machine's name: MACs, or an error. Default: the machine's own MAC."""
    macs: dict[str, Any] = {}

    class Fake:
        def __init__(self, machine: SiteMachine) -> None:
            self._machine = machine

        def report(self) -> MachineReport:
            return MachineReport("Maker R1", "S1", "On", macs.get(self._machine.name, (self._machine.mac,)))

    @contextmanager
    def connect(machine: SiteMachine) -> Any:
        if isinstance(macs.get(machine.name), BmcError):
            raise macs[machine.name]
        yield Fake(machine)

    monkeypatch.setattr(bmcs, "connections", lambda *_: connect)
    monkeypatch.setattr("operations.machines_journal.STATE", tmp_path / "state")
    monkeypatch.setattr(operation, "nodes", lambda _: frozenset())
    monkeypatch.setattr(operation, "stale", lambda _: ([], []))
    monkeypatch.setattr(install.Installation, "run", _must_not)
    return macs


def _must_not(*_: object) -> None:
    raise AssertionError("a machine was touched")


@pytest.fixture
def provisioned(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Cluster]:
    """Replace the named spec with one that has these values of provisioning."""

    def set_(**replaced: str) -> Cluster:
        replacement = built(**replaced)
        for module in ("cli.verbs.machines", "cli.verbs.status"):
            monkeypatch.setattr(f"{module}.checked", lambda _: replacement)
            monkeypatch.setattr(f"{module}.cluster_folder", lambda _: Path())
        return replacement

    return set_


@pytest.mark.parametrize("verb", VERBS)
def test_the_help_of_each_verb_has_examples_that_fit_80_columns(
    menagerie: Menagerie, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    page, examples = menagerie("machines", verb, "--help").out.split("Examples")
    lines = [line for line in examples.splitlines() if line.strip()]
    assert [line for line in lines if not line.strip().startswith(f"./menagerie machines {verb} ")] == []
    assert "Arguments" in page


def test_render_writes_a_folder_for_each_site_and_only_what_differs(menagerie: Menagerie, tmp_path: Path) -> None:
    first = menagerie("machines", "render", LYNX, "-o", str(tmp_path / "served"))
    assert first.code == 0, first.err
    assert "3 machines, 15 files changed; copy it to http://10.9.255.5/menagerie" in first.out
    again = menagerie("machines", "render", LYNX, "-o", str(tmp_path / "served"), "--json")
    assert again.json == {"cluster": "lynx", "changed": {"sjc1": 0}, "wiped": []}
    wiped = menagerie("machines", "render", LYNX, "-o", str(tmp_path / "served"), "--wipe", "r1", "--json")
    assert wiped.json == {"cluster": "lynx", "changed": {"sjc1": 2}, "wiped": ["lynx-gpu-1", "lynx-gpu-2"]}


def test_a_dry_run_of_render_counts_what_differs_and_writes_nothing(menagerie: Menagerie, tmp_path: Path) -> None:
    dry = menagerie("machines", "render", LYNX, "-o", str(tmp_path / "served"), "--dry-run")
    assert (dry.code, "3 machines, 15 files would change\n" in dry.out, list(tmp_path.iterdir())) == (0, True, [])
    menagerie("machines", "render", LYNX, "-o", str(tmp_path / "served"))
    files = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    wiped = menagerie("machines", "render", LYNX, "-o", str(tmp_path / "served"), "--wipe", "r1", "--dry-run", "--json")
    assert (wiped.json["changed"], wiped.json["dry_run"]) == ({"sjc1": 2}, True)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == files


def test_a_cluster_without_machines_to_install_is_bad_input(menagerie: Menagerie, tmp_path: Path) -> None:
    ran = menagerie("machines", "render", "lab", "-o", str(tmp_path), "--json")
    assert (ran.code, ran.json["error"]["code"]) == (2, "nothing-to-provision")
    ran = menagerie("status", LYNX, "machines", "--limit", "r9")
    assert (ran.code, "--limit r9 matches no machine of lynx" in ran.err) == (2, True)


def test_status_shows_each_machine_and_its_problems(menagerie: Menagerie, answers: dict[str, Any]) -> None:
    assert menagerie("status", LYNX, "machines").code == 0
    answers |= {
        "lynx-gpu-1": ("b8:59:9f:10:00:02",),
        "lynx-gpu-2": (),
        "lynx-gpu-3": BmcError(BmcErrorKind.LOGIN, "BMC does not know user x"),
    }
    ran = menagerie("status", LYNX, "machines")
    assert ran.code == 1
    assert "0 of 3 machines match the spec" in ran.out
    assert "error[INV-003] the BMC at 10.9.254.11 (lynx-gpu-1) belongs to lynx-gpu-2" in ran.err
    assert "reports no MACs" in ran.err
    assert "lynx-gpu-3: BMC does not know user x" in ran.err


def test_silent_bmcs_alone_have_their_own_exit_code(menagerie: Menagerie, answers: dict[str, Any]) -> None:
    answers["lynx-gpu-3"] = BmcError(BmcErrorKind.UNREACHABLE, "BMC does not answer")
    ran = menagerie("status", LYNX, "machines", "--json")
    assert ran.code == 4
    assert [machine["ok"] for machine in ran.json["machines"]] == [True, True, False]
    assert ran.json["machines"][2]["error"]["code"] == "bmc-unreachable"
    ran = menagerie("machines", "install", LYNX, "--limit", "lynx-gpu-3", "--json")
    assert (ran.code, ran.json["error"]["code"]) == (4, "machines-unreachable")


@pytest.mark.usefixtures("answers")
def test_a_dry_run_says_what_would_be_installed_and_touches_nothing(menagerie: Menagerie) -> None:
    ran = menagerie("machines", "install", LYNX, "--limit", "r1", "--dry-run")
    assert ran.code == 0, ran.err
    assert ran.out.splitlines() == ["lynx-gpu-1  r1  10.9.1.11  by PXE", "lynx-gpu-2  r1  10.9.1.12  by PXE"]
    ran = menagerie("machines", "install", LYNX, "--dry-run", "--json")
    assert json.loads(ran.out)["to_install"] == ["lynx-gpu-1", "lynx-gpu-2", "lynx-gpu-3"]


@pytest.mark.usefixtures("answers")
@pytest.mark.parametrize(
    ("options", "typed", "code", "text"),
    [
        (
            (),
            None,
            2,
            "there is no terminal to ask on. Nothing was changed. To overwrite the system disks of 3 machines",
        ),
        (("--json",), None, 2, "--json does not ask"),
        ((), "y\n", 1, '"y" is not lynx. Nothing was changed.'),
        ((), "\n", 1, '"" is not lynx'),
    ],
)
def test_nothing_is_overwritten_unless_the_cluster_is_named(
    menagerie: Menagerie, options: tuple[str, ...], typed: str | None, code: int, text: str
) -> None:
    ran = menagerie("machines", "install", LYNX, *options, typed=typed)
    assert (ran.code, text in ran.err) == (code, True)


@pytest.mark.usefixtures("answers")
def test_nodes_of_the_cluster_are_refused_without_again(menagerie: Menagerie, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operation, "nodes", lambda _: frozenset({"lynx-gpu-2", "cloud-1"}))
    ran = menagerie("machines", "install", LYNX, "--yes", "--json")
    assert (ran.code, ran.json["error"]["code"]) == (2, "machines-refused")
    assert "already nodes of lynx: lynx-gpu-2;" in ran.err
    assert menagerie("machines", "install", LYNX, "--again", "--dry-run").code == 0


@pytest.mark.usefixtures("answers")
def test_served_files_must_match_the_spec(menagerie: Menagerie, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operation, "stale", lambda _: (["lynx-gpu-1"], []))
    ran = menagerie("machines", "install", LYNX, "--yes")
    assert (ran.code, "the files served for lynx-gpu-1 differ from the spec" in ran.err) == (2, True)
    monkeypatch.setattr(operation, "stale", lambda _: ([], ["http://10.9.255.5/menagerie"]))
    ran = menagerie("machines", "install", LYNX, "--dry-run")
    assert (ran.code, "http://10.9.255.5/menagerie does not answer from here" in ran.err) == (0, True)


@pytest.mark.usefixtures("answers")
def test_a_site_without_bmc_and_reports_is_refused(menagerie: Menagerie, provisioned: Callable[..., Cluster]) -> None:
    provisioned(bmc="null", reports="null")
    ran = menagerie("machines", "install", "lynx", "--yes")
    assert (ran.code, "provisioning has neither bmc nor reports" in ran.err) == (2, True)
    ran = menagerie("status", "lynx", "machines")
    assert (ran.code, "no selected machine of lynx has a BMC" in ran.err) == (2, True)


@pytest.mark.usefixtures("answers")
def test_invalid_amounts_are_refused_before_any_bmc_is_contacted(menagerie: Menagerie) -> None:
    ran = menagerie("machines", "install", LYNX, "--parallel", "0")
    assert (ran.code, "'--parallel': \"0\" is neither a number of at least 1" in ran.err) == (2, True)


def test_the_login_of_bmcs_is_a_secret_that_can_be_stored(
    menagerie: Menagerie, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored: list[tuple[str, str]] = []

    class Stack:
        def set_secret(self, name: str, value: str) -> None:
            stored.append((name, value))

    monkeypatch.setattr("cli.actions.build.make_stack", lambda *_: Stack())
    monkeypatch.setattr("getpass.getpass", lambda _: "root:cal:vin")
    ran = menagerie("secret", LYNX, "bmc-sjc1", typed="")
    assert (ran.code, stored) == (0, [("bmc-sjc1", "root:cal:vin")])
    assert "`machines install` uses it" in ran.err
