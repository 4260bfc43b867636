"""House rules that no linter checks: pure packages, one pin per version, no uncollected test. `lint-imports` has the rest."""

from __future__ import annotations

import ast
import functools
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster import versions
from cluster.audit.programs import MODULE
from tools import lock, manifest

ROOT = Path(__file__).resolve().parent.parent

PURE = (
    "cluster/audit",
    "components",
    "controllers/metering",
    "controllers/planner",
    "etcd",
    "network",
    "stacks/policies",
)
READS_FILES = ROOT / "network" / "roce" / "results.py"
"""Results of fabric tests, which an operator keeps."""

# Programs that are copied to hosts: they can use only the host's Python.
ON_HOSTS = [
    *sorted((ROOT / "cluster" / "audit" / "host").glob("*.py")),
    *sorted((ROOT / "components" / "control_plane" / "host").glob("*.py")),
    *sorted((ROOT / "etcd" / "host").rglob("*.py")),
    *sorted((ROOT / "components" / "userdata" / "boot").glob("*.py")),
    *sorted((ROOT / "components" / "userdata" / "refresh").glob("*.py")),
    *sorted((ROOT / "components" / "userdata" / "apply").glob("*.py")),
    *sorted((ROOT / "stacks").glob("*/menagerie_secret.py")),
    *sorted((ROOT / "roles" / "module_utils" / "menagerie_host").glob("*.py")),
    *sorted((ROOT / "roles").glob("*/files/**/*.py")),
]


def sources(*packages: str) -> list[Path]:
    return [path for package in packages for path in sorted((ROOT / package).rglob("*.py"))]


@functools.cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    """Return the nodes of a file that the house rules check: imports, calls and function definitions."""
    kept = (ast.Import, ast.ImportFrom, ast.Call, ast.FunctionDef)
    return tuple(node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, kept))


def imports(path: Path) -> Iterator[tuple[int, str]]:
    """Yield line and dotted name of every import of a file, including those inside functions."""
    for node in nodes(path):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)


def where(path: Path, line: int) -> str:
    return f"{path.relative_to(ROOT)}:{line}"


def test_pure_packages_do_not_import_impure_modules() -> None:
    worldly = re.compile(r"(os|random|secrets|socket|subprocess|time|urllib|http|requests|tempfile)(\.|$)")
    wrong = [
        where(path, line)
        for path in sources(*PURE)
        if path not in ON_HOSTS
        for line, name in imports(path)
        if worldly.match(name)
    ]
    assert wrong == []


def test_pure_packages_read_no_clock_and_open_no_file() -> None:
    wrong = []
    for path in sources(*PURE):
        for node in nodes(path) if path not in (*ON_HOSTS, READS_FILES) else ():
            if isinstance(node, ast.Call):
                called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
                if called in {"open", "now", "utcnow", "today", "uuid4", "write_text", "write_bytes"}:
                    wrong.append(f"{where(path, node.lineno)} calls {called}()")
    assert wrong == []


def test_programs_for_hosts_need_only_the_standard_library_and_modules_placed_with_them() -> None:
    wrong = [f"{where(path, line)} imports {name}" for path in ON_HOSTS for line, name in strangers(path)]
    assert wrong == []


def strangers(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the imports of a host's program that the host does not have."""
    siblings = {sibling.stem for sibling in path.parent.glob("*.py")}
    (role, *_) = path.relative_to(ROOT / "roles").parts if path.is_relative_to(ROOT / "roles") else ("",)
    # The collector of evidence is placed next to each package that uses it: `cluster.audit.programs`.
    available = {*sys.stdlib_module_names, *siblings, MODULE}
    for line, name in imports(path):
        if name.split(".")[0] not in available and name.split(".")[:2] not in placed_with(role):
            yield line, name


def placed_with(role: str) -> list[list[str]]:
    """Return the shared modules that this role places with its program."""
    variables = ROOT / "roles" / role / "vars" / "main.yml"
    lists = re.findall(r"query\('host_program', [^{}]*shared=\[(.*?)\]", variables.read_text()) if role else []
    return [["menagerie_host", name] for listed in lists for name in re.findall(r"'(\w+)'", listed)]


def test_every_test_is_where_pytest_collects_it() -> None:
    stray = [
        where(path, node.lineno)
        for path in sources("tests")
        if not path.name.startswith("test_")
        for node in nodes(path)
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    ]
    empty = [
        str(path.relative_to(ROOT))
        for path in sources("tests")
        if path.name.startswith("test_") and "def test_" not in path.read_text()
    ]
    assert (stray, empty) == ([], [])


def test_only_test_folders_that_are_programs_are_packages() -> None:
    assert {path.parent.name for path in (ROOT / "tests").rglob("__init__.py")} == {"bench", "conformance"}


def test_there_are_at_most_sixteen_top_level_folders() -> None:
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    rooms = {path.split("/")[0] for path in listed if "/" in path and not path.startswith(".")}
    assert len(rooms) <= 16


@pytest.mark.parametrize(
    ("module", "version"),
    [
        ("kubernetes", versions.KUBERNETES),
        ("kubernetes-1.35", versions.KUBERNETES_BEFORE),
        ("etcd", versions.ETCD),
        ("containerd", versions.CONTAINERD),
        ("runc", versions.RUNC),
        ("cni-plugins", versions.CNI_PLUGINS),
        ("crictl", versions.CRICTL),
        ("flannel", versions.FLANNEL),
        ("coredns", versions.COREDNS),
        ("konnectivity", versions.KONNECTIVITY),
        ("metrics-server", versions.METRICS_SERVER),
        ("node-exporter", versions.NODE_EXPORTER),
        ("nvidia-device-plugin", versions.NVIDIA_DEVICE_PLUGIN),
        ("pulumi", versions.PULUMI),
        ("restic", versions.RESTIC),
    ],
)
def test_a_program_is_built_at_the_pinned_version(module: str, version: str) -> None:
    assert manifest.modules()[module].version == version


def test_every_go_module_is_in_the_manifest() -> None:
    assert {path.parent.name for path in (ROOT / "tools").glob("*/go.mod")} == set(manifest.modules())


def test_the_pulumi_sdk_has_the_version_of_the_cli() -> None:
    assert f"\npulumi=={versions.PULUMI} " in (ROOT / "requirements.lock").read_text()


@pytest.mark.parametrize(
    ("module", "version"),
    [
        ("kubernetes", versions.KUBERNETES),
        ("kubernetes-1.35", versions.KUBERNETES_BEFORE),
        ("conformance", versions.KUBERNETES),
    ],
)
def test_the_kubernetes_staging_modules_have_the_version_of_kubernetes(module: str, version: str) -> None:
    text = (ROOT / "tools" / module / "go.mod").read_text()
    replaced = set(re.findall(r"^replace k8s\.io/\S+ => k8s\.io/\S+ v0\.(\S+)$", text, re.MULTILINE))
    assert replaced == {version.removeprefix("1.")}


def test_the_lock_file_matches_the_current_dependencies() -> None:
    first = (ROOT / "requirements.lock").read_text().splitlines()[0]
    assert first == lock.headline(), "pyproject.toml has changed: run `make lock`"


def test_the_kubernetes_client_is_not_loaded_alongside_the_engine() -> None:
    program = "import sys, cli.actions.build; sys.exit('kubernetes' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=False).returncode == 0


def test_an_import_inside_a_function_says_why() -> None:
    """Ruff's PLC0415 refuses such imports; docs/decisions/0102-declared-verbs.md lists the kinds of reasons."""
    reason = re.compile(r"# noqa: PLC0415 - (extra|image|memory|order|time): \S")
    files = subprocess.run(
        ["git", "grep", "-n", "PLC0415", "--", "*.py"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    lines = [line for line in files.stdout.splitlines() if not line.startswith("tests/test_layout.py")]
    assert [line for line in lines if not reason.search(line)] == []
    assert lines
