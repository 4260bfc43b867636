"""`init`: write a folder for a new cluster, and print the next steps."""

from __future__ import annotations

from typing import Any

from cli.output import console, print_json
from cluster.bundles import PUBLIC_KEYS, collecting
from cluster.errors import RefusedError
from cluster.project import ROOT
from cluster.spec import Cloud
from cluster.starter import Request
from operations import init as operation
from operations.init import Prepared

__all__ = ["Cloud", "Request", "init"]


def init(asked: Request, *, dry_run: bool, as_json: bool) -> None:
    """Write the files, or only print them. Errors: raises RefusedError if one exists."""
    try:
        prepared = operation.prepare(asked, ROOT)
        if not dry_run:
            operation.write(prepared)
    except FileExistsError as error:
        raise RefusedError(str(error), code="init-refused") from None
    if as_json:
        print_json(_document(prepared, written=not dry_run))
    else:
        _print(prepared, chosen=bool(asked.region), written=not dry_run)


def _document(prepared: Prepared, *, written: bool) -> dict[str, Any]:
    starter = prepared.starter
    return {
        "cluster": prepared.cluster.name,
        "cloud": starter.request.cloud,
        "region": starter.region,
        "ranges": starter.ranges.named(),
        "written": written,
        "files": {_shown(prepared, name): text for name, text in starter.files.items()},
        "placeholders": {placeholder.path: placeholder.why for placeholder in starter.placeholders},
        "secrets": starter.secrets,
        "checksums_lacking": prepared.lacking,
        "next": [command for command, _ in _commands(prepared)],
    }


def _print(prepared: Prepared, *, chosen: bool, written: bool) -> None:
    starter = prepared.starter
    if not written:
        for name, text in starter.files.items():
            console.print(f"--- {_shown(prepared, name)}\n{text}", markup=False)
    default = "" if chosen or prepared.cluster.is_lab else " (the default; --region chooses another)"
    ranges = ", ".join(f"{name} {network}" for name, network in starter.ranges.named().items())
    lines = [f"{prepared.cluster.name}: {starter.request.cloud} {starter.region}{default}; {ranges}"]
    lines.append(
        f"{'wrote' if written else 'would write'} {', '.join(_shown(prepared, name) for name in starter.files)}"
    )
    console.print("\n".join([*lines, "", "Next:", *_steps(prepared)]), markup=False)


def _steps(prepared: Prepared) -> list[str]:
    """Return the next steps in order, numbered."""
    starter, steps, pairs = prepared.starter, [], _commands(prepared)
    width = max(len(command) for command, _ in pairs)
    commands = [f"{command:<{width}}  {what}" for command, what in pairs]
    if starter.placeholders:
        lines = [f"     {placeholder.path}: {placeholder.why}" for placeholder in starter.placeholders]
        steps.append("\n".join(["replace each PLACEHOLDER:", *lines]))
    steps += commands[:1]
    if prepared.lacking:
        lines = [f"     {source}" for source in prepared.lacking]
        bundle = collecting(prepared.cluster.name, prepared.folder.with_name(PUBLIC_KEYS))
        head = f"{bundle}  collects {len(lines)} checksums, without which `up` does not start:"
        steps.append("\n".join([head, *lines]))
    steps += commands[1:]
    return [f"  {number}. {step}" for number, step in enumerate(steps, start=1)]


def _commands(prepared: Prepared) -> list[tuple[str, str]]:
    """Return pairs of (command or page, what it is for)."""
    name, starter = prepared.cluster.name, prepared.starter
    page = operation.page_of(starter.request)
    up = (f"./menagerie up {name}", "ask, then build")
    check = (f"./menagerie check {name}", "lists all errors at once")
    if prepared.cluster.is_lab:
        return [check, (page, "what the lab needs; a machine runs one lab at a time"), up]
    validate = (f"./menagerie validate {name}", "in a simulated cloud; needs no account")
    secrets = [
        (f"./menagerie secret {name} {key}", "an edge router's key; typed without echo") for key in starter.secrets
    ]
    sites = [("docs/how-to/hybrid.md", "set up the site")] if secrets else []
    return [check, validate, (page, "from step 2: account, credentials, state"), *secrets, *sites, up]


def _shown(prepared: Prepared, file: str) -> str:
    return f"{prepared.folder.parent.name}/{prepared.folder.name}/{file}"
