"""The ordinary CLI: `pulumi preview`, `up` and `destroy` of the checkout's own Pulumi.yaml and __main__.py.

The language host is a stand-in (tests/stacks/language_host), the cloud is simulated, the state lies in a folder.
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

from cluster.load import load_cluster
from cluster.sources import without_checksum
from sandbox.simcloud.server import simulated_clouds
from sandbox.simcloud.world import World
from stacks import lean
from stacks.plain import ALLOW_UNKNOWN
from stacks.validation.plugin import dynamic_resources
from stacks.validation.private import variables
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
        """The small example, changed at its top."""
        example = ROOT / "examples" / "gcp-small" / "cluster.yaml"
        sums = {each.source: "0" * 64 for each in without_checksum(load_cluster(example).spec)}
        spec = {**yaml.safe_load(example.read_text()), "artefacts": {"sha256": sums}, **changes}
        file = self.folder / "inventories" / STACK / "cluster.yaml"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(yaml.safe_dump(spec))

    def pulumi(self, *words: str, **more: str) -> tuple[int, str]:
        """(exit code, all that it says)."""
        done = subprocess.run(
            [self.cli, *words, "--stack", STACK, "--non-interactive"],
            cwd=self.folder,
            env={**self.environment, **more},
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout + done.stderr


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
    for each in (state, home):
        each.mkdir()
    lean.without_log_files(home)
    world = World()
    with simulated_clouds(world, clouds=["gcp"]) as simulated:
        environment = {
            **{name: value for name, value in variables(os.environ).items() if name != "PYTHONPATH"},
            **simulated,
            **QUICK,
            "HOME": str(folder),
            "PATH": f"{HOST}:{os.environ['PATH']}",
            "MENAGERIE_PYTHON": sys.executable,
            "PULUMI_BACKEND_URL": f"file://{state}",
            "PULUMI_HOME": str(home),
            "PULUMI_SKIP_UPDATE_CHECK": "true",
            "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
        }
        made = Checkout(folder, pulumi, environment, world)
        made.write({})
        yield made


def test_without_a_stack_the_cli_says_so_and_with_one_what_is_missing_before_anything_is_asked(
    checkout: Checkout,
) -> None:
    code, said = checkout.pulumi("preview")
    assert code != 0
    assert f"no stack named '{STACK}' found" in said
    assert checkout.pulumi("stack", "init")[0] == 0
    code, said = checkout.pulumi("preview")
    assert code != 0
    assert f"{STACK} can't be reached yet" in said
    assert "no project: set GOOGLE_PROJECT" in said
    assert "no credentials: run gcloud auth application-default login" in said
    assert f"./menagerie validate {STACK}" in said
    assert "Traceback" not in said
    assert list(checkout.world) == []


def test_the_configuration_may_name_the_project_and_the_spec(checkout: Checkout) -> None:
    assert checkout.pulumi("config", "set", "gcp:project", PROJECT)[0] == 0
    code, said = checkout.pulumi("preview")
    assert code != 0
    assert "no project" not in said
    assert "no credentials" in said
    (checkout.folder / "elsewhere.yaml").write_text("name: nobody\n")
    assert checkout.pulumi("config", "set", "spec", "elsewhere.yaml")[0] == 0
    code, said = checkout.pulumi("preview", **TOKEN)
    assert code != 0
    assert "elsewhere.yaml:1:1: error[CFG-013] control_plane is missing" in said
    assert checkout.pulumi("config", "rm", "spec")[0] == 0


def test_a_wrong_spec_is_refused_in_the_words_of_check_and_an_unknown_machine_may_be_allowed(
    checkout: Checkout,
) -> None:
    pool = {"machine": UNKNOWN, "min": 2, "max": 12}
    checkout.write({"pools": {"cpu": pool}})
    try:
        code, said = checkout.pulumi("preview", **TOKEN)
        assert code != 0
        assert f"error[CLD-002] {UNKNOWN} isn't a gcp size" in said
        assert f"{ALLOW_UNKNOWN}=1 pulumi up" in said
        assert "Traceback" not in said
        # Without credentials it ends right after the spec: what is asked here is only how that is judged.
        _, said = checkout.pulumi("preview", **{ALLOW_UNKNOWN: "1"})
        assert f"warning[CLD-002] {UNKNOWN}" in said
        assert "no credentials" in said
    finally:
        checkout.write({})


def test_a_cluster_is_planned_made_found_as_it_was_and_deleted_once_it_was_released(checkout: Checkout) -> None:
    code, said = checkout.pulumi("preview", **TOKEN)
    assert code == 0, said
    assert "to create" in said
    assert list(checkout.world) == []
    code, said = checkout.pulumi("up", "--yes", "--skip-preview", **TOKEN)
    assert code == 0, said
    made = len(list(checkout.world))
    assert made > 50
    code, said = checkout.pulumi("preview", "--expect-no-changes", **TOKEN)
    assert code == 0, said
    written = yaml.safe_load((checkout.folder / f"Pulumi.{STACK}.yaml").read_text())
    assert written.pop("encryptionsalt")
    assert written == {"config": {"gcp:project": PROJECT}}
    assert checkout.pulumi("config", "set", "release", "true")[0] == 0
    # What the CLI starts has served keys three times by now; one process serves them from here on.
    with dynamic_resources() as plugin:
        attached = {**TOKEN, PROVIDERS: f"{checkout.environment[PROVIDERS]},{plugin}"}
        code, said = checkout.pulumi("up", "--yes", "--skip-preview", **attached)
        assert code == 0, said
        assert len(list(checkout.world)) == made
        code, said = checkout.pulumi("destroy", "--yes", "--skip-preview", **attached)
    assert code == 0, said
    assert list(checkout.world) == []


def test_a_release_that_is_no_boolean_is_refused_by_the_engine(checkout: Checkout) -> None:
    assert checkout.pulumi("config", "set", "release", "soon")[0] == 0
    code, said = checkout.pulumi("preview", **TOKEN)
    assert code != 0
    assert "release" in said
    assert "boolean" in said
    assert checkout.pulumi("config", "rm", "release")[0] == 0
