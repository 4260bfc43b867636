"""Where the state of stacks is kept, and which stacks are known there.

Whether a cluster exists is asked here and nowhere else: a folder of this checkout tells only what this checkout did.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import yaml

from stacks.errors import BackendError, OtherStateError

PROJECT = "menagerie"
WHOLE_OR_NOT = "metadata=skip"
"""A run that is killed may leave an empty file of attributes beside a checkpoint, and "failed to load checkpoint: EOF"
ever after. Checkpoints themselves are renamed into place (gocloud.dev, blob/fileblob)."""
_VARIABLE = "PULUMI_BACKEND_URL"
_CHECKPOINT = re.compile(r"(?P<stack>.+)\.json(\.gz)?")
_PATIENCE_S = 60


@dataclass(frozen=True)
class Backend:
    """A place for the state of stacks.

    url: as the engine takes it. said_by: what names it, "" for the folder that this checkout keeps for one cluster.
    own: that folder. It may not exist.
    """

    url: str
    said_by: str
    own: Path

    @property
    def shown(self) -> str:
        """For people and logs: without a user, a password and options."""
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"

    def stacks(self, cli: Callable[[], Path]) -> frozenset[str]:
        """Names of all stacks that it knows. BackendError where it can't be read.

        cli: gives the Pulumi CLI; not called for a folder of this checkout, where the files say it.
        """
        return _listed(self, cli()) if self.said_by else _in_folder(self)


def chosen(cluster: str, state_dir: Path, root: Path, environment: Mapping[str, str], *, is_lab: bool) -> Backend:
    """Where a cluster's stack is: as the variable says, else Pulumi.yaml, else in a folder of the checkout.

    The engine goes by the same order (pkg/workspace, GetCurrentCloudURL). A lab is of one machine, so that the file that
    a team shares does not speak of it. BackendError for a relative path: the engine runs in another folder.
    """
    own = state_dir / "pulumi"
    if url := environment.get(_VARIABLE, ""):
        return _absolute(Backend(url, _VARIABLE, own), cluster)
    file = root / "Pulumi.yaml"
    if not is_lab and (url := _of_project(file)):
        return _absolute(Backend(url, "Pulumi.yaml", own), cluster)
    return Backend(f"file://{own}?{WHOLE_OR_NOT}", "", own)


def refuse_elsewhere(cluster: str, backend: Backend) -> None:
    """OtherStateError where the backend is somebody's choice, and this checkout's own folder has a stack of that name."""
    if backend.said_by and cluster in _in_folder(Backend(f"file://{backend.own}", "", backend.own)):
        raise OtherStateError(
            f"{cluster} has its stack in {backend.own}, and {backend.said_by} names {backend.shown}, which knows none of "
            f"that name; nothing was touched. Take that away to work with the stack in the folder"
        )


def _of_project(file: Path) -> str:
    try:
        known = yaml.safe_load(file.read_text())
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise BackendError(f"{file} can't be read, and may say where the state is: {error}") from None
    backend = known.get("backend") if isinstance(known, dict) else None
    return str(backend.get("url") or "") if isinstance(backend, dict) else ""


def _absolute(backend: Backend, cluster: str) -> Backend:
    parts = urlsplit(backend.url)
    if parts.scheme == "file" and (parts.netloc or not parts.path.startswith("/")) and parts.netloc != "~":
        raise BackendError(
            f"the state of {cluster} can't be found: {backend.said_by} names {backend.shown}, a relative path; "
            f"write file://{os.path.abspath(parts.netloc + parts.path)}"
        )
    return backend


def _in_folder(backend: Backend) -> frozenset[str]:
    try:
        names = os.listdir(backend.own / ".pulumi" / "stacks" / PROJECT)
    except FileNotFoundError:
        return frozenset()
    except OSError as error:
        raise _unreadable(backend, error.strerror or str(error)) from None
    return frozenset(found["stack"] for name in names if (found := _CHECKPOINT.fullmatch(name)))


def _listed(backend: Backend, cli: Path) -> frozenset[str]:
    """One run of the CLI, far from any Pulumi.yaml, with a home that goes with it."""
    with tempfile.TemporaryDirectory(prefix="menagerie-look-") as folder:
        home = Path(folder, "home")
        home.mkdir()
        (home / "logs").touch()  # see `lean.without_log_files`
        variables = {_VARIABLE: backend.url, "PULUMI_HOME": str(home), "PULUMI_SKIP_UPDATE_CHECK": "true"}
        words = [str(cli), "stack", "ls", "--project", PROJECT, "--output", "json", "--non-interactive"]
        try:
            done = subprocess.run(
                words,
                cwd=folder,
                env={**os.environ, **variables},
                capture_output=True,
                text=True,
                check=False,
                timeout=_PATIENCE_S,
            )
        except subprocess.TimeoutExpired:
            raise _unreadable(backend, f"no answer within {_PATIENCE_S} s") from None
    if done.returncode:
        raise _unreadable(backend, done.stderr.strip().removeprefix("error: ") or done.stdout.strip())
    try:
        return frozenset(str(each["name"]).rpartition("/")[2] for each in json.loads(done.stdout))
    except (ValueError, TypeError, KeyError):
        raise _unreadable(backend, f"the CLI says {done.stdout[:200]!r}") from None


def _unreadable(backend: Backend, why: str) -> BackendError:
    by = f", which {backend.said_by} names," if backend.said_by else ""
    return BackendError(
        f"the state of stacks at {backend.shown}{by} can't be read, so nobody knows whether the cluster exists; "
        f"nothing was touched: {why}"
    )
