"""Where the state of stacks is kept, and which stacks exist there.

Only this module answers whether a cluster exists: a folder of this checkout shows only what this checkout did.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import pwd
import re
import shlex
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
"""A killed run can leave an empty attributes file next to a checkpoint; every later run then fails with "failed to load
checkpoint: EOF". Checkpoints themselves are renamed into place (gocloud.dev, blob/fileblob)."""
_VARIABLE = "PULUMI_BACKEND_URL"
_CREDENTIALS = "PULUMI_CREDENTIALS_PATH"
_ENCRYPTED = "$pulumiSecureStore"
_CHECKPOINT = re.compile(r"(?P<stack>.+)\.json(\.gz)?")
_PATIENCE_S = 60
_LOGIN = "pulumi login"
_CLOUD = "https://api.pulumi.com"


@dataclass(frozen=True)
class Backend:
    """A place for the state of stacks.

    url: as the engine takes it. configured_by: what configures it, "" for the folder that this checkout keeps for one cluster.
    own: that folder. It may not exist.
    """

    url: str
    configured_by: str
    own: Path

    @property
    def shown(self) -> str:
        """Return the URL for people and logs: without user, password and options."""
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"

    def stacks(self, cli: Callable[[], Path]) -> frozenset[str]:
        """Return the names of all stacks in it. Raises BackendError if it can't be read.

        cli: returns the path of the Pulumi CLI; not called for a folder of this checkout, whose files are read directly.
        """
        return _listed(self, cli()) if self.configured_by else in_folder(self)


def chosen(cluster: str, state_dir: Path, root: Path, environment: Mapping[str, str], *, is_lab: bool) -> Backend:
    """Return the backend of a cluster's stack: from the variable, Pulumi.yaml, `pulumi login`, or a folder of the checkout.

    The engine uses the same order (pkg/workspace, GetCurrentCloudURL), and has no such folder. A stack that is already in
    the folder stays there, whatever the operator is logged in to. A lab exists on one machine only, so neither Pulumi.yaml,
    which a team shares, nor a login applies to it. Raises BackendError for a relative path: the engine runs in another folder.
    """
    here = own_folder(state_dir)
    own = here.own
    if url := environment.get(_VARIABLE, ""):
        return _absolute(Backend(url, _VARIABLE, own), cluster)
    if is_lab:
        return here
    if url := _of_project(root / "Pulumi.yaml"):
        return _absolute(Backend(url, "Pulumi.yaml", own), cluster)
    if cluster not in in_folder(here) and (url := _of_login(environment)):
        return _absolute(Backend(url, _LOGIN, own), cluster)
    return here


def own_folder(state_dir: Path) -> Backend:
    """Return the backend in the checkout's folder for one cluster."""
    own = state_dir / "pulumi"
    return Backend(f"file://{own}?{WHOLE_OR_NOT}", "", own)


def login(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variable that lets an engine with a home of its own use what `pulumi login` has stored."""
    folder = _credentials_folder(environment)
    return {_CREDENTIALS: str(folder)} if folder.is_dir() else {}


def refuse_elsewhere(cluster: str, backend: Backend) -> None:
    """Raise OtherStateError if the backend is configured but this checkout's own folder has the cluster's stack."""
    if backend.configured_by and cluster in in_folder(Backend(f"file://{backend.own}", "", backend.own)):
        raise OtherStateError(
            f"{cluster} has its stack in {backend.own}, but {backend.configured_by} names {backend.shown}, which has no stack of "
            f"that name. Nothing was changed. To move the stack there: ./menagerie state move {cluster}; to work with it in "
            f"the folder, remove that setting"
        )


def refuse_second(cluster: str, state_dir: Path, root: Path, environment: Mapping[str, str]) -> None:
    """Raise OtherStateError if the ordinary CLI runs with another backend than this checkout's own folder, which has the stack.

    That CLI never looks into the folder, so it would build the cluster a second time.
    """
    here = own_folder(state_dir)
    if cluster not in in_folder(here):
        return
    used = _of_ordinary_cli(here.own, root, environment)
    if _is_folder(used.url, here.own):
        return
    kept = f"PULUMI_BACKEND_URL={shlex.quote(here.url)}"
    text = (
        f"{cluster} has its stack in {here.own}, where only ./menagerie looks. {used.configured_by} names {used.shown}, where this "
        f"run would build a second {cluster}. Nothing was changed.\n"
    )
    if _is_empty(here, cluster):
        raise OtherStateError(
            f"{text}  the stack in the folder has no resources; to remove it: "
            f"{kept} pulumi stack rm {cluster} --preserve-config --yes"
        )
    # ./menagerie prefers the folder to a login.
    target = f"PULUMI_BACKEND_URL={shlex.quote(used.url)} " if used.configured_by == _LOGIN else ""
    raise OtherStateError(
        f"{text}  to move the stack there: {target}./menagerie state move {cluster}\n"
        f"  to work with it where it is: export {kept}"
    )


def _of_ordinary_cli(own: Path, root: Path, environment: Mapping[str, str]) -> Backend:
    """Return the backend that the engine uses without us. Its last choice is Pulumi Cloud."""
    if url := environment.get(_VARIABLE, ""):
        return Backend(url, _VARIABLE, own)
    if url := _of_project(root / "Pulumi.yaml"):
        return Backend(url, "Pulumi.yaml", own)
    return Backend(_of_login(environment) or _CLOUD, _LOGIN, own)


def _is_folder(url: str, folder: Path) -> bool:
    parts = urlsplit(url)
    path = os.path.expanduser(parts.netloc + parts.path)
    return parts.scheme == "file" and os.path.realpath(path) == os.path.realpath(folder)


def _is_empty(backend: Backend, cluster: str) -> bool:
    """Return whether a stack in a folder of this checkout has no resources; False if its file has an unknown form."""
    file = _stacks_of(backend) / f"{cluster}.json"
    try:
        text = file.read_bytes() if file.exists() else gzip.decompress(file.with_name(f"{file.name}.gz").read_bytes())
        return not (json.loads(text)["checkpoint"].get("latest") or {}).get("resources")
    except (OSError, EOFError, ValueError, TypeError, KeyError, AttributeError):
        return False


def _stacks_of(backend: Backend) -> Path:
    return backend.own / ".pulumi" / "stacks" / PROJECT


def _of_project(file: Path) -> str:
    try:
        settings = yaml.safe_load(file.read_text())
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise BackendError(f"{file} can't be read, and it may name the state's backend: {error}") from None
    backend = settings.get("backend") if isinstance(settings, dict) else None
    return str(backend.get("url") or "") if isinstance(backend, dict) else ""


def _credentials_folder(environment: Mapping[str, str]) -> Path:
    """Return the folder of `pulumi login` (sdk/go/common/workspace, getCredsFilePath).

    By default it is in the home of the user database, whatever HOME says (sdk/go/common/util/pulumihome).
    """
    named = environment.get(_CREDENTIALS) or environment.get("PULUMI_HOME")
    return Path(named) if named else _home(environment) / ".pulumi"


def _home(environment: Mapping[str, str]) -> Path:
    with contextlib.suppress(KeyError):
        if home := pwd.getpwuid(os.getuid()).pw_dir:
            return Path(home)
    return Path(environment.get("HOME") or "/")


def _of_login(environment: Mapping[str, str]) -> str:
    """Return the backend that the operator is logged in to, "" for none."""
    file = _credentials_folder(environment) / "credentials.json"
    way_out = f"set {_VARIABLE}, or backend.url in Pulumi.yaml"
    try:
        text = file.read_text()
        known = json.loads(text) if text.strip() else {}
    except FileNotFoundError:
        return ""
    except (OSError, ValueError) as error:
        raise BackendError(f"{file} can't be read, and it may name the state's backend: {error}; {way_out}") from None
    if not isinstance(known, dict) or _ENCRYPTED in known:
        raise BackendError(f"{file} is encrypted, and it may name the state's backend; {way_out}")
    return str(known.get("current") or "")


def _absolute(backend: Backend, cluster: str) -> Backend:
    parts = urlsplit(backend.url)
    if parts.scheme == "file" and (parts.netloc or not parts.path.startswith("/")) and parts.netloc != "~":
        raise BackendError(
            f"the state of {cluster} can't be found: {backend.configured_by} names {backend.shown}, a relative path; "
            f"write file://{os.path.abspath(parts.netloc + parts.path)}"
        )
    return backend


def in_folder(backend: Backend) -> frozenset[str]:
    """Return the names of the stacks in a folder of this checkout, without the CLI."""
    try:
        names = os.listdir(_stacks_of(backend))
    except FileNotFoundError:
        return frozenset()
    except OSError as error:
        raise _unreadable(backend, error.strerror or str(error)) from None
    return frozenset(match["stack"] for name in names if (match := _CHECKPOINT.fullmatch(name)))


def _listed(backend: Backend, cli: Path) -> frozenset[str]:
    """List the stacks with one run of the CLI, outside any folder with a Pulumi.yaml and with a temporary home."""
    with tempfile.TemporaryDirectory(prefix="menagerie-look-") as folder:
        home = Path(folder, "home")
        home.mkdir()
        (home / "logs").touch()  # see `lean.without_log_files`
        variables = {
            _VARIABLE: backend.url,
            **login(os.environ),
            "PULUMI_HOME": str(home),
            "PULUMI_SKIP_UPDATE_CHECK": "true",
        }
        command = [str(cli), "stack", "ls", "--project", PROJECT, "--output", "json", "--non-interactive"]
        try:
            done = subprocess.run(
                command,
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
        return frozenset(str(stack["name"]).rpartition("/")[2] for stack in json.loads(done.stdout))
    except (ValueError, TypeError, KeyError):
        raise _unreadable(backend, f"the CLI's answer is {done.stdout[:200]!r}") from None


def _unreadable(backend: Backend, why: str) -> BackendError:
    by = f", configured by {backend.configured_by}," if backend.configured_by else ""
    return BackendError(
        f"the state of stacks at {backend.shown}{by} can't be read, so it is unknown whether the cluster exists. "
        f"Nothing was changed. {why}"
    )
