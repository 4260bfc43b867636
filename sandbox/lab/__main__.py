"""``python -m sandbox.lab``: inspect this checkout's lab, and break it."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict
from typing import Annotated

import typer

from sandbox.lab import hosts, inspect
from sandbox.lab.errors import LabError
from sandbox.lab.inspect import LabLines

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, help=__doc__)


@app.callback(invoke_without_command=True)
def show(
    context: typer.Context, as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False
) -> None:
    """List the lab's services and hosts, with their log files and the interfaces to capture on."""
    if context.invoked_subcommand:
        return
    lab = inspect.read_lab()
    if as_json:
        print(json.dumps(asdict(lab), indent=2))
    else:
        _print(lab)


# Everything after the host's name belongs to the command, including options.
@app.command(context_settings={"allow_interspersed_args": False})
def run(host: str, argv: list[str]) -> None:
    """Run a command inside a host, for example a shell."""
    command = hosts.inside(host, argv)
    os.execvp(command[0], command)


@app.command()
def kill(host: str) -> None:
    """Cut a host's power."""
    hosts.kill(host)
    print(f"{host} is down; `./menagerie up lab` replaces it")


def _print(lab: LabLines) -> None:
    print(f"lab {lab.lab} in {lab.folder}")
    for name, answers in lab.services.items():
        print(f"  {name:<14} {'answers' if answers else 'does not answer'}")
    for host in lab.hosts:
        alive = "runs" if host.alive else "dead"
        address = host.made.address if host.made else ""
        memory = f"{host.memory_bytes / 2**20:5.0f} MiB"
        print(f"  {host.name:<14} {alive}  {address:<12} {memory}  {host.port:<14}  {host.console}")
    print(f"capture packets on a host's cable, p-...: nsenter --net=/run/netns/{lab.router} tcpdump -ni p-...")


if __name__ == "__main__":
    try:
        app(prog_name="python -m sandbox.lab")
    except LabError as error:
        sys.exit(f"error: {error}")
    except PermissionError:
        sys.exit("error: the lab belongs to root; use sudo")
