"""The toolkit as a wheel, as `uv tool install` has it: it works on the project that it is run in."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from cli import extras, spelling
from cluster import project

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that an installer unpacks the wheel into."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "site")
    return folder / "site"


def run(site: Path, working: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    start = [sys.executable, "-P", "-c", "import menagerie; menagerie.main()", *arguments]
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    return subprocess.run(
        start, cwd=working, env={**kept, "PYTHONPATH": str(site)}, capture_output=True, text=True, check=False
    )


def test_a_wheel_has_the_product_below_one_package_and_no_tests(site: Path) -> None:
    assert {path.name.partition("-")[0] for path in site.iterdir()} == {"menagerie"}
    assert not list(site.rglob("tests")) + list(site.rglob("__pycache__"))
    for name in (
        "site.yml",
        "ansible.cfg",
        "roles/kubelet/tasks/main.yml",
        "cluster/checksums.yaml",
        "tools/programs.toml",
    ):
        assert (site / "menagerie" / name).is_file()


def test_every_folder_of_the_product_is_in_the_wheel(site: Path) -> None:
    packages = {path.parent.name for path in ROOT.glob("*/__init__.py")} - {"tests"}
    assert packages <= {path.name for path in (site / "menagerie").iterdir()}


def test_an_installed_command_begins_a_project_and_finds_it_from_a_folder_below(site: Path, tmp_path: Path) -> None:
    done = run(site, tmp_path, "init", "koala", "--cloud", "aws")
    assert done.returncode == 0, done.stderr
    assert "menagerie up koala" in done.stdout
    assert "./menagerie" not in done.stdout
    done = run(site, tmp_path / "inventories" / "koala", "check")
    assert (done.returncode, done.stdout.split(":")[0]) == (0, "1 checked, no errors"), done.stderr


def test_messages_of_an_installed_command_name_pages_that_exist(site: Path, tmp_path: Path) -> None:
    spec = tmp_path / "inventories" / "koala" / "cluster.yaml"
    spec.parent.mkdir(parents=True)
    spec.write_text("nothing: 1\n")
    message = run(site, tmp_path, "check").stderr
    (page,) = {word for word in message.split() if word.endswith("errors.md")}
    assert Path(page).is_absolute()
    assert Path(page).is_file(), message
    document = json.loads(run(site, tmp_path, "check", "--json").stdout)
    assert '"docs/reference/errors.md#' in json.dumps(document)


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ('see docs/how-to/vpn.md, "When it goes wrong"', "docs/how-to/vpn.md"),
        ("(docs/how-to/state.md)", "docs/how-to/state.md"),
        ("\x1b[2mdocs/reference/errors.md explains", "docs/reference/errors.md"),
        ("--policy-document file://docs/aws-policy.json", "docs/aws-policy.json"),
        ("--file=docs/gcp-role.yaml", "docs/gcp-role.yaml"),
    ],
)
def test_a_page_in_a_message_becomes_a_whole_path(text: str, path: str) -> None:
    assert (ROOT / path).is_file()
    assert spelling.installed(text) == text.replace("docs/", f"{ROOT}/docs/")


@pytest.mark.parametrize(
    "text",
    [
        "https://kubernetes.io/docs/reference/command-line-tools-reference/",
        '{"docs": "docs/reference/errors.md#net-001"}',
        "/home/me/docs/how-to/mine.md",
        "../docs/how-to/mine.md",
        "docs/mine.md",
    ],
)
def test_other_paths_stay(text: str) -> None:
    assert spelling.installed(text) == text


def test_an_installed_command_knows_its_version(site: Path, tmp_path: Path) -> None:
    assert run(site, tmp_path, "--version").stdout.startswith("menagerie 0.")


def test_a_project_can_be_named_for_any_toolkit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert project.find(tmp_path) == project.TOOLKIT == ROOT
    monkeypatch.setenv(project.VARIABLE, str(tmp_path))
    assert project.find(ROOT) == tmp_path


@pytest.mark.parametrize(("module", "extra"), [("pulumi_aws", "aws"), ("azure.mgmt", "azure"), ("ldap3.core", "ldap")])
def test_a_missing_extra_is_named_with_the_command_that_installs_it(module: str, extra: str) -> None:
    text = extras.missing(ModuleNotFoundError(f"No module named {module!r}", name=module))
    assert text is not None
    assert text.endswith(f"uv tool install '.[{extra}]'")
    assert extras.missing(ModuleNotFoundError(name="clusters")) is None
