"""``python -m lab``: look around in the lab of this checkout, and break it."""

from __future__ import annotations

import json
import sys
from typing import Annotated

import typer

from lab import hosts, inspect
from lab.errors import LabError

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, help=__doc__)


@app.callback(invoke_without_command=True)
def show(
    context: typer.Context, as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False
) -> None:
    """List the lab's services and hosts, and where their logs are."""
    if context.invoked_subcommand:
        return
    found = inspect.look()
    if found is None:
        sys.exit("there is no lab of this checkout on the machine; `make lab` brings one up")
    if as_json:
        print(json.dumps(found, default=lambda value: value.__dict__, indent=2))
        return
    print(f"lab {found.lab} in {found.folder}")
    for name, answers in found.services.items():
        print(f"  {name:<14} {'answers' if answers else 'does not answer'}")
    for host in found.hosts:
        alive = "runs" if host.alive else "dead"
        print(f"  {host.name:<14} {alive}  {host.address:<12} {host.memory_bytes / 2**20:5.0f} MiB  {host.console}")


@app.command(context_settings={"ignore_unknown_options": True})
def run(host: str, argv: list[str]) -> None:
    """Run a command inside a host."""
    done = hosts.run(host, argv)
    sys.stdout.write(done.stdout)
    sys.stderr.write(done.stderr)
    raise typer.Exit(done.returncode)


@app.command()
def kill(host: str) -> None:
    """Cut a host's power."""
    hosts.kill(host)
    print(f"{host} is dead; `./menagerie up lab` replaces it")


if __name__ == "__main__":
    try:
        app(prog_name="python -m lab")
    except LabError as error:
        sys.exit(f"error: {error}")
