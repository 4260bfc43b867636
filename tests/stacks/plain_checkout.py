"""A checkout with one cluster, for the ordinary Pulumi CLI: its language host, simulated clouds, and a state in a folder."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from clients.access import Access
from cluster.load import load_cluster
from cluster.sources import without_checksum
from cluster.spec import Cloud, Cluster
from sandbox.simcloud.server import simulated_clouds
from sandbox.simcloud.world import World
from stacks import lean
from stacks.automation import ClusterStack
from stacks.program import declare
from stacks.validation.private import saving, variables
from tests.programs import program
from tests.stacks.engines import QUICK

ROOT = Path(__file__).resolve().parents[2]
HOST = Path(os.environ.get("MENAGERIE_LANGUAGE_HOST") or Path(__file__).parent / "language_host")
"""The folder of the language host: the stand-in, or Pulumi's own, built from its source (docs/how-to/ci.md)."""
LOGINS: Mapping[Cloud, Mapping[str, str]] = {
    Cloud.AWS: {"AWS_ACCESS_KEY_ID": "of-nobody", "AWS_SECRET_ACCESS_KEY": "of-nobody"},
    Cloud.AZURE: {
        "ARM_CLIENT_ID": "of-nobody",
        "ARM_CLIENT_SECRET": "of-nobody",
        "ARM_TENANT_ID": "of-nobody",
        "ARM_SUBSCRIPTION_ID": "00000000-0000-0000-0000-000000000000",
    },
    Cloud.GCP: {"GOOGLE_OAUTH_ACCESS_TOKEN": "of-nobody"},
}
"""What passes for a login: no request leaves the simulated clouds."""
STACKS: Mapping[Cloud, str] = {Cloud.AWS: "small", Cloud.AZURE: "koala", Cloud.GCP: "gibbon"}
"""Cloud -> the cluster of examples/<cloud>-small."""


@dataclass
class Checkout:
    """A checkout with one cluster in it, and the ordinary CLI."""

    folder: Path
    cli: str
    cloud: Cloud
    environment: Mapping[str, str]
    world: World

    @property
    def stack(self) -> str:
        return STACKS[self.cloud]

    @property
    def login(self) -> Mapping[str, str]:
        return LOGINS[self.cloud]

    def write(self, changes: Mapping[str, object]) -> None:
        """Write the small example with changed top-level keys."""
        example = ROOT / "examples" / f"{self.cloud}-small" / "cluster.yaml"
        sums = {program_.source: "0" * 64 for program_ in without_checksum(load_cluster(example).spec)}
        spec = {**yaml.safe_load(example.read_text()), "artefacts": {"sha256": sums}, **changes}
        file = self.folder / "inventories" / self.stack / "cluster.yaml"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(yaml.safe_dump(spec))

    def pulumi(self, *arguments: str, **more: str) -> tuple[int, str]:
        """Run the CLI; return (exit code, all its output)."""
        done = subprocess.run(
            [self.cli, *arguments, "--stack", self.stack, "--non-interactive"],
            cwd=self.folder,
            env={**self.environment, **more},
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout + done.stderr

    def continued_by_menagerie(self) -> None:
        """Open the stack as `menagerie` does, find it complete, and change it."""
        settings = self.folder / f"Pulumi.{self.stack}.yaml"
        with pytest.MonkeyPatch.context() as patch:
            for name, value in {**self.environment, **self.login}.items():
                patch.setenv(name, value)
            current = [self._loaded()]
            url = self.environment["PULUMI_BACKEND_URL"]
            stack = ClusterStack(
                current[0], lambda: declare(current[0]), Path(self.cli), self.folder / "menagerie", settings, url
            )
            assert Access.from_stack(self.stack, stack.outputs()).outputs.cluster == self.stack
            assert set(stack.preview().changes) == {"same"}
            plane = current[0].spec.control_plane.model_dump(mode="json", exclude_defaults=True)
            self.write({"control_plane": {**plane, "operators": ["10.250.4.0/24"]}})
            current[0] = self._loaded()
            assert stack.up()[0].changed > 0

    def _loaded(self) -> Cluster:
        return load_cluster(self.folder / "inventories" / self.stack / "cluster.yaml")


@contextmanager
def checkout_of(cloud: Cloud, folder: Path) -> Iterator[Checkout]:
    """Make a checkout in the folder, and simulate its cloud for a block."""
    pulumi = program("pulumi")
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
    with simulated_clouds(world, clouds=[cloud]) as simulated:
        environment = {
            **{name: value for name, value in variables(os.environ).items() if name != "PYTHONPATH"},
            **simulated,
            **QUICK,
            **saving(None),
            "HOME": str(folder),
            "PATH": f"{HOST}:{Path(pulumi).parent}:{os.environ['PATH']}",
            "HTTPS_PROXY": "http://127.0.0.1:9",  # buckets are not simulated; nothing may reach the real ones
            "MENAGERIE_PYTHON": sys.executable,
            "PULUMI_BACKEND_URL": f"file://{state}",
            "PULUMI_HOME": str(home),
            "PULUMI_SKIP_UPDATE_CHECK": "true",
            "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
        }
        checkout = Checkout(folder, pulumi, cloud, environment, world)
        checkout.write({})
        yield checkout
