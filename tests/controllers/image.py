"""Unpacks the controllers' image and starts its program as a container would."""

from __future__ import annotations

import gzip
import io
import json
import shutil
import subprocess
import tarfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

CHROOT = shutil.which("chroot", path="/usr/sbin:/usr/bin:/sbin:/bin") or "chroot"
_ACCOUNT = "var/run/secrets/kubernetes.io/serviceaccount"


def manifest_of(layout: Path) -> dict[str, Any]:
    """Return the manifest of the only image in an OCI layout."""
    (only,) = json.loads((layout / "index.json").read_text())["manifests"]
    manifest: dict[str, Any] = json.loads(_blob(layout, only))
    return manifest


def config_of(layout: Path) -> dict[str, Any]:
    config: dict[str, Any] = json.loads(_blob(layout, manifest_of(layout)["config"]))
    return config


def layers_of(layout: Path) -> Iterator[tarfile.TarFile]:
    for layer in manifest_of(layout)["layers"]:
        with tarfile.open(fileobj=io.BytesIO(gzip.decompress(_blob(layout, layer))), mode="r:") as archive:
            yield archive


def unpack(layout: Path, root: Path) -> None:
    root.mkdir()
    for archive in layers_of(layout):
        archive.extractall(root, filter="fully_trusted")


def _blob(layout: Path, descriptor: Mapping[str, Any]) -> bytes:
    return (layout / "blobs" / str(descriptor["digest"]).replace(":", "/")).read_bytes()


class Container:
    """A root file system in which the image's program runs with the image's user, entrypoint and environment."""

    def __init__(self, layout: Path, root: Path) -> None:
        self.root, self._config = root, config_of(layout)["config"]

    def mount(self, token: str, authority: str, spec: Path) -> None:
        """Add what a kubelet mounts: the ServiceAccount's token and CA, and the spec's folder."""
        account = self.root / _ACCOUNT
        account.mkdir(parents=True, exist_ok=True)
        (account / "token").write_text(token)
        (account / "ca.crt").write_text(authority)
        folder = self.root / "etc" / "menagerie" / "spec"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(spec.parent, folder)

    def command(self, *words: str) -> list[str]:
        return [CHROOT, f"--userspec={self._config['User']}", str(self.root), *self._config["Entrypoint"], *words]

    def python(self, program: str) -> str:
        """Run a Python program and return its output."""
        interpreter = self._config["Entrypoint"][0]
        command = [CHROOT, f"--userspec={self._config['User']}", str(self.root), interpreter, "-P", "-c", program]
        ran = subprocess.run(command, env=self.environment, capture_output=True, text=True, check=False)
        assert ran.returncode == 0, ran.stderr
        return ran.stdout

    @property
    def environment(self) -> dict[str, str]:
        return dict(each.split("=", 1) for each in self._config["Env"])

    @contextmanager
    def running(self, log: Path, api_port: int, *words: str) -> Iterator[subprocess.Popen[bytes]]:
        """Run the entrypoint with these arguments during a block, then kill it."""
        service = {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": str(api_port)}
        with log.open("wb") as file:
            process = subprocess.Popen(self.command(*words), env=self.environment | service, stdout=file, stderr=file)
            try:
                yield process
            finally:
                process.kill()
                process.wait()
