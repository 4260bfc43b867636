"""Every error has a code and an exit code that callers rely on: neither may disappear or change."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, TypeGuard

import pytest

from cli import exits
from cluster import errors
from cluster.errors import FailedError, MenagerieError, NotConfirmedError, RefusedError
from cluster.problems import Problem

ROOT = Path(__file__).resolve().parents[2]
PRODUCT = (
    *("cli", "clients", "cluster", "components", "controllers", "etcd"),
    *("inventories", "network", "operations", "sandbox", "stacks", "tools"),
)
ON_HOSTS = ("cluster/audit/host", "components/control_plane/host", "components/userdata", "etcd/host")
"""Programs for hosts, which are independent of each other and of the command."""

CODES = {
    1: "address ansible api api-unreachable artefacts cloud-call directory endless-tokens etcd etcd-agent file groups image kubelets-behind lab "
    "ledger "
    "machine-unfit machines-failed mirror no-go no-login no-policies no-record no-space not-backed-up not-built not-confirmed not-installed not-yet output "
    "permission plugin pods-behind programs read-only repair reports roll-stopped stack still-encrypts timed-out unexpected "
    "upgrade-stopped workers-failed",
    2: "bad-certificate bad-spec bad-trace bmc-trust bundle disagreement etcd-refused expander foreign-file foreign-rings init-refused keeps-data "
    "machines-refused mirror-target monitoring-off newer-data no-autoscaler no-backups no-image no-key no-private-access no-rdma no-router no-tenancy no-way-back "
    "not-as-its-spec not-carried not-confirmed not-held not-ready nothing-matches nothing-to-provision other-plan other-release "
    "other-state passphrase pods-would-be-lost state-move unknown-gateway unknown-host unknown-proof unknown-secret "
    "unknown-size "
    "unreadable upgrade-refused",
    3: "foreign-lab locked taken-over",
    4: "machines-unreachable workers-unreachable",
    5: "state-unreadable",
}
"""Exit code -> error codes. Add new codes here; never remove one."""


@cache
def trees() -> Mapping[Path, ast.Module]:
    paths = [path for package in PRODUCT for path in sorted((ROOT / package).rglob("*.py"))]
    return {
        path: ast.parse(path.read_text())
        for path in paths
        if not str(path.relative_to(ROOT)).startswith(ON_HOSTS) and path.name != "menagerie_secret.py"
    }


@cache
def kinds() -> dict[str, type[MenagerieError]]:
    """Return every class of error by name, rebuilt from the sources, because importing all packages takes long."""
    classes = {
        name: kind for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, MenagerieError)
    }
    nodes = [node for tree in trees().values() for node in tree.body if isinstance(node, ast.ClassDef)]
    while ready := [
        node for node in nodes if node.name not in classes and node.bases and {*bases(node)} <= classes.keys()
    ]:
        for node in ready:
            own = {each.targets[0].id: ast.literal_eval(each.value) for each in node.body if is_word(each)}
            classes[node.name] = type(node.name, tuple(classes[name] for name in bases(node)), own)
    return classes


def bases(node: ast.ClassDef) -> list[str]:
    return [ast.unparse(each).rpartition(".")[2] for each in node.bases]


def is_word(node: ast.stmt) -> TypeGuard[Any]:
    return isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) in ("code", "exit_code")


def raised() -> Iterator[tuple[str, ast.Call, type[MenagerieError]]]:
    """Yield (place, call, class) of every error that is created."""
    for path, tree in trees().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call):
                name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
                if name in kinds():
                    yield f"{path.relative_to(ROOT)}:{node.lineno}", node, kinds()[name]


def code_of(call: ast.Call) -> str:
    """Return the literal after code=, or ""."""
    return next((str(ast.literal_eval(each.value)) for each in call.keywords if each.arg == "code"), "")


def foreign() -> Iterator[tuple[str, int]]:
    """Yield codes for errors of others."""
    for name in ("failures", "running"):
        for node in ast.walk(trees()[ROOT / "cli" / f"{name}.py"]):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Foreseen":
                number, word = node.args[1:3]
                if (
                    isinstance(number, ast.Attribute)
                    and getattr(number.value, "id", "") == "exits"
                    and isinstance(word, ast.Constant)
                ):
                    yield str(word.value), getattr(exits, number.attr)


def test_error_codes_and_their_exit_codes_do_not_change() -> None:
    pairs = {(code_of(call) or kind.code, kind.exit_code) for _, call, kind in raised()}
    pairs |= {("not-confirmed", exits.FAILED), *((word, number) for word, number in foreign())}
    assert pairs == {(word, number) for number, words in CODES.items() for word in words.split()}


def test_every_raised_error_has_a_code() -> None:
    assert [place for place, call, kind in raised() if not code_of(call) and not hasattr(kind, "code")] == []


def test_error_classes_have_unique_names() -> None:
    names = Counter(
        node.name
        for tree in trees().values()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef) and node.name.endswith("Error")
    )
    assert [name for name, count in names.items() if count > 1] == []


def test_an_error_has_the_code_of_its_class_unless_it_gets_another() -> None:
    problem = Problem("INV-006", "no host")
    error = RefusedError("no host", code="nothing-matches", problems=[problem])
    assert (str(error), error.code, error.exit_code, [*error.problems]) == ("no host", "nothing-matches", 2, [problem])
    assert (FailedError("x", code="lab").exit_code, FailedError("x", code="lab").retryable) == (1, False)


@pytest.mark.parametrize(("declined", "exit_code"), [(False, 2), (True, 1)])
def test_an_unconfirmed_verb_is_refused_and_a_declined_one_fails(declined: bool, exit_code: int) -> None:
    error = NotConfirmedError("no", declined=declined)
    assert (error.code, error.exit_code) == ("not-confirmed", exit_code)


OWN_BASE = {
    "AmountError": "an option's, which turns it into a usage error",
    "ConflictError": "a store's answer to a race, which the caller settles",
    "DocumentError": "a finding without its file, which the loader adds",
    "FailedProofError": "what a proof observed, a row of its report",
    "NoRoomError": "a brake's, which postpones the host",
    "PerftestError": "a measurement without a result, a row of its report",
}
"""Public errors of the rooms below that are no kinds: a caller in another file always turns them into something else."""


def test_public_errors_of_operations_and_their_rooms_are_kinds_of_the_command() -> None:
    rooms = ("cluster", "inventories", "network", "operations")
    own = {
        node.name
        for path, tree in trees().items()
        if path.relative_to(ROOT).parts[0] in rooms
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef) and bases(node) == ["Exception"] and not node.name.startswith("_")
    }
    assert own - {"MenagerieError"} == OWN_BASE.keys()
