"""The output of `controllers`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from rich.text import Text

from cli import exits
from cli.output import console, errors, print_json
from cluster.spec import Cluster
from controllers.apply import ControllerState, ManifestChange, ManifestVerb
from controllers.manifests import Desired

_MARKS = {ManifestVerb.CREATE: ("+", "green"), ManifestVerb.CHANGE: ("~", "yellow"), ManifestVerb.DELETE: ("-", "red")}
_FEW = 4


def progress(*, quiet: bool) -> Callable[[str], None]:
    """Return a function that prints progress."""
    return lambda text: None if quiet else errors.print(f"  {text}", style="dim", markup=False)


def image_built(folder: Path | None, digest: str, reference: str, *, as_json: bool) -> None:
    """Print the image that was built, and where it was pushed."""
    if as_json:
        print_json({"folder": str(folder) if folder else None, "digest": digest, "reference": reference or None})
        return
    if folder:
        console.print(f"{folder}: {digest}", markup=False)
    if reference:
        console.print(reference, markup=False)
        errors.print(Text(f"to run it: ./menagerie controllers apply CLUSTER --image {reference}"))


def would_build(folder: Path | None, reference: str | None, *, as_json: bool) -> None:
    """Print what a dry run would build."""
    if as_json:
        print_json({"folder": str(folder) if folder else None, "reference": reference, "made": False})
        return
    ways = [f"write it to {folder}" if folder else "", f"push it to {reference}" if reference else ""]
    console.print(f"would build the image and {' and '.join(filter(None, ways))}; nothing was built", markup=False)


def document(cluster: Cluster, states: Sequence[ControllerState]) -> dict[str, object]:
    """Return the running controllers as a JSON document."""
    return {"cluster": cluster.name, "controllers": [state.to_json() for state in states]}


def code(states: Sequence[ControllerState]) -> int:
    """Return the exit code: FAILED if one is not ready or has no leader."""
    return exits.FAILED if any(state.missing or _lacks_leader(state) for state in states) else exits.DONE


def _lacks_leader(state: ControllerState) -> bool:
    return bool(state.kind.lease) and not state.holder


def _leader(state: ControllerState) -> str:
    if not state.kind.lease:
        return "every pod serves"
    return f"{state.holder} leads, last renewed at {state.renewed}" if state.holder else "no leader"


def listed(cluster: Cluster, states: Sequence[ControllerState]) -> None:
    """Print the running controllers."""
    for state in states:
        ready = f"{state.ready} of {state.replicas} ready; {_leader(state)}"
        console.print(f"{state.kind.name}  {state.kind.about}  {ready}", markup=False)
        console.print(f"  {state.image}", markup=False, style="dim")
        for trouble in state.troubles:
            errors.print(Text(f"  {trouble}", style="red"))
    if not states:
        again = f"./menagerie controllers apply {cluster.name} --image REFERENCE"
        console.print(f"{cluster.name}: no controllers run; to run them: {again}", markup=False)


class View:
    """Print a run of `apply` or `remove`."""

    def __init__(self, cluster: Cluster, *, quiet: bool) -> None:
        self._cluster, self._quiet = cluster, quiet
        self._changes: tuple[ManifestChange, ...] = ()

    def show(self, changes: tuple[ManifestChange, ...]) -> None:
        """Print the planned changes."""
        self._changes = changes
        for change in () if self._quiet else changes:
            mark, colour = _MARKS[change.verb]
            errors.print(Text(f"  {mark} {change.what}{_fields(change)}", style=colour))

    def tell(self, change: ManifestChange) -> None:
        """Print that a change was made."""
        if not self._quiet:
            errors.print(f"✓ {change.what}", style="green", markup=False)

    def wait(self, reason: str) -> None:
        """Print what the verb waits for."""
        if not self._quiet:
            errors.print(Text(f"  waiting: {reason}", style="dim"))

    def conclude(self, desired: Desired, changes: tuple[ManifestChange, ...], *, made: bool) -> None:
        """Print the result of `apply`."""
        names = [kind.name for kind in desired.kinds]
        if self._quiet:
            self._print(made, image=desired.image, controllers=names, files=sorted(desired.files))
            return
        what = f"{len(changes)} changes" if changes else "up to date; nothing to change"
        done = f"{what}{' made; all ready' if made else ' would be made'}" if changes else what
        console.print(f"{self._cluster.name}: {', '.join(names)}: {done}", markup=False)

    def removed(self, changes: tuple[ManifestChange, ...], *, made: bool) -> None:
        """Print the result of `remove`."""
        if self._quiet:
            self._print(made)
            return
        done = "deleted" if made else "would be deleted"
        text = f"{len(changes)} objects {done}" if changes else "no controllers; nothing to delete"
        console.print(f"{self._cluster.name}: {text}", markup=False)

    def _print(self, made: bool, **more: object) -> None:
        changes = [change.to_json() for change in self._changes]
        print_json({"cluster": self._cluster.name, "made": made, "changes": changes, **more})


def _fields(change: ManifestChange) -> str:
    if not change.fields:
        return ""
    more = f" and {len(change.fields) - _FEW} more" if len(change.fields) > _FEW else ""
    return f": {', '.join(change.fields[:_FEW])}{more}"
