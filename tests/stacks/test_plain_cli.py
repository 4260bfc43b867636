"""The ordinary CLI: `pulumi preview`, `up` and `destroy` of the checkout's own Pulumi.yaml and __main__.py.

The language host is a stand-in that runs the commands of the real one (tests/stacks/language_host). The clouds are
simulated, and the state is in a folder.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from clients.access import Access
from cluster.load import load_cluster
from cluster.sources import without_checksum
from cluster.spec import Cluster
from sandbox.simcloud.server import simulated_clouds
from sandbox.simcloud.world import World
from stacks import lean
from stacks.automation import ClusterStack
from stacks.plain import ALLOW_UNKNOWN
from stacks.program import declare
from stacks.validation.plugin import dynamic_resources
from stacks.validation.private import saving, variables
from tests.programs import program
from tests.stacks.engines import QUICK

ROOT = Path(__file__).resolve().parents[2]
STACK, PROJECT = "gibbon", "apes-prod"
HOST = Path(__file__).parent / "language_host"
UNKNOWN = "c3-standard-5"
PROVIDERS = "PULUMI_DEBUG_PROVIDERS"
TOKEN = {"GOOGLE_OAUTH_ACCESS_TOKEN": "of-nobody"}


@dataclass
class Checkout:
    """A checkout with one cluster in it, and the ordinary CLI."""

    folder: Path
    cli: str
    environment: Mapping[str, str]
    world: World

    def write(self, changes: Mapping[str, object]) -> None:
        """Write the small example with changed top-level keys."""
        example = ROOT / "examples" / "gcp-small" / "cluster.yaml"
        sums = {program_.source: "0" * 64 for program_ in without_checksum(load_cluster(example).spec)}
        spec = {**yaml.safe_load(example.read_text()), "artefacts": {"sha256": sums}, **changes}
        file = self.folder / "inventories" / STACK / "cluster.yaml"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(yaml.safe_dump(spec))

    def pulumi(self, *arguments: str, **more: str) -> tuple[int, str]:
        """Run the CLI; return (exit code, all its output)."""
        done = subprocess.run(
            [self.cli, *arguments, "--stack", STACK, "--non-interactive"],
            cwd=self.folder,
            env={**self.environment, **more},
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout + done.stderr

    def continued_by_menagerie(self) -> None:
        """Open the stack as `menagerie` does, find it complete, and change it."""
        settings = self.folder / f"Pulumi.{STACK}.yaml"
        with pytest.MonkeyPatch.context() as patch:
            for name, value in {**self.environment, **TOKEN}.items():
                patch.setenv(name, value)
            current = [self._loaded()]
            url = self.environment["PULUMI_BACKEND_URL"]
            stack = ClusterStack(
                current[0], lambda: declare(current[0]), Path(self.cli), self.folder / "menagerie", settings, url
            )
            assert Access.from_stack(STACK, stack.outputs()).outputs.cluster == STACK
            assert set(stack.preview().changes) == {"same"}
            plane = current[0].spec.control_plane.model_dump(mode="json", exclude_defaults=True)
            self.write({"control_plane": {**plane, "operators": ["10.250.4.0/24"]}})
            current[0] = self._loaded()
            assert stack.up()[0].changed > 0

    def _loaded(self) -> Cluster:
        return load_cluster(self.folder / "inventories" / STACK / "cluster.yaml")


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Checkout]:
    pulumi = program("pulumi")
    folder = tmp_path_factory.mktemp("checkout")
    for name in ("Pulumi.yaml", "__main__.py"):
        shutil.copy(ROOT / name, folder)
    for package in ROOT.glob("*/__init__.py"):
        if package.parent.name != "inventories":
            (folder / package.parent.name).symlink_to(package.parent)
    (folder / "roles").symlink_to(ROOT / "roles")
    (folder / ".venv").symlink_to(sys.prefix)
    state, home = folder / "state", folder / "pulumi-home"
    for path in (state, home):
        path.mkdir()
    lean.without_log_files(home)
    world = World()
    with simulated_clouds(world, clouds=["gcp"]) as simulated:
        environment = {
            **{name: value for name, value in variables(os.environ).items() if name != "PYTHONPATH"},
            **simulated,
            **QUICK,
            **saving(None),
            "HOME": str(folder),
            "PATH": f"{HOST}:{os.environ['PATH']}",
            "MENAGERIE_PYTHON": sys.executable,
            "PULUMI_BACKEND_URL": f"file://{state}",
            "PULUMI_HOME": str(home),
            "PULUMI_SKIP_UPDATE_CHECK": "true",
            "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
        }
        checkout_ = Checkout(folder, pulumi, environment, world)
        checkout_.write({})
        yield checkout_


def test_the_cli_reports_a_missing_stack_and_missing_credentials_before_any_request(
    checkout: Checkout,
) -> None:
    code, output = checkout.pulumi("preview")
    assert code != 0
    assert f"no stack named '{STACK}' found" in output
    assert checkout.pulumi("stack", "init")[0] == 0
    code, output = checkout.pulumi("preview")
    assert code != 0
    assert f"{STACK} can't be reached yet" in output
    assert "no project is configured: set GOOGLE_PROJECT" in output
    assert "no credentials: run gcloud auth application-default login" in output
    assert f"./menagerie validate {STACK}" in output
    assert "Traceback" not in output
    assert list(checkout.world) == []


def test_an_environment_without_pip_is_refused_as_by_the_real_language_host(checkout: Checkout, tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv"], check=True)
    whole = (checkout.folder / ".venv").readlink()
    (checkout.folder / ".venv").unlink()
    (checkout.folder / ".venv").symlink_to(tmp_path / "venv")
    try:
        code, output = checkout.pulumi("preview", **TOKEN)
    finally:
        (checkout.folder / ".venv").unlink()
        (checkout.folder / ".venv").symlink_to(whole)
    assert code != 0
    assert "failed to discover package requirements: calling `" in output
    assert "-m pip list --format json`: exit status 1" in output


def test_the_configuration_may_name_the_project_and_the_spec(checkout: Checkout) -> None:
    assert checkout.pulumi("config", "set", "gcp:project", PROJECT)[0] == 0
    code, output = checkout.pulumi("preview")
    assert code != 0
    assert "no project" not in output
    assert "no credentials" in output
    (checkout.folder / "elsewhere.yaml").write_text("name: nobody\n")
    assert checkout.pulumi("config", "set", "spec", "elsewhere.yaml")[0] == 0
    code, output = checkout.pulumi("preview", **TOKEN)
    assert code != 0
    assert "elsewhere.yaml:1:1: error[CFG-013] control_plane is missing" in output
    assert checkout.pulumi("config", "rm", "spec")[0] == 0


def test_a_wrong_spec_is_refused_as_by_check_and_an_unknown_machine_can_be_allowed(
    checkout: Checkout,
) -> None:
    pool = {"machine": UNKNOWN, "min": 2, "max": 12}
    checkout.write({"pools": {"cpu": pool}})
    try:
        code, output = checkout.pulumi("preview", **TOKEN)
        assert code != 0
        assert f"error[CLD-002] {UNKNOWN} isn't a gcp size" in output
        assert f"{ALLOW_UNKNOWN}=1 pulumi up" in output
        assert "Traceback" not in output
        # Without credentials the run ends right after the check of the spec, which is all that this test is about.
        _, output = checkout.pulumi("preview", **{ALLOW_UNKNOWN: "1"})
        assert f"warning[CLD-002] {UNKNOWN}" in output
        assert "no credentials" in output
    finally:
        checkout.write({})


def test_a_cluster_is_planned_created_shared_with_menagerie_and_deleted_after_its_release(checkout: Checkout) -> None:
    code, output = checkout.pulumi("preview", **TOKEN)
    assert code == 0, output
    assert "to create" in output
    assert list(checkout.world) == []
    code, output = checkout.pulumi("up", "--yes", "--skip-preview", **TOKEN)
    assert code == 0, output
    count = len(list(checkout.world))
    assert count > 50
    code, output = checkout.pulumi("preview", "--expect-no-changes", **TOKEN)
    assert code == 0, output
    written = yaml.safe_load((checkout.folder / f"Pulumi.{STACK}.yaml").read_text())
    assert written.pop("encryptionsalt")
    assert written == {"config": {"gcp:project": PROJECT}}
    checkout.continued_by_menagerie()
    code, output = checkout.pulumi("preview", "--expect-no-changes", **TOKEN)
    assert code == 0, output
    assert checkout.pulumi("config", "set", "release", "true")[0] == 0
    # Plugins that the CLI starts have served keys three times by now; one process serves them from here on.
    with dynamic_resources() as plugin:
        attached = {**TOKEN, PROVIDERS: f"{checkout.environment[PROVIDERS]},{plugin}"}
        code, output = checkout.pulumi("up", "--yes", "--skip-preview", **attached)
        assert code == 0, output
        assert len(list(checkout.world)) == count
        code, output = checkout.pulumi("destroy", "--yes", "--skip-preview", **attached)
    assert code == 0, output
    assert list(checkout.world) == []


def test_the_engine_refuses_a_release_that_is_not_a_boolean(checkout: Checkout) -> None:
    assert checkout.pulumi("config", "set", "release", "soon")[0] == 0
    code, output = checkout.pulumi("preview", **TOKEN)
    assert code != 0
    assert "release" in output
    assert "boolean" in output
    assert checkout.pulumi("config", "rm", "release")[0] == 0
