"""The command `menagerie`: a thin layer. Each verb loads, calls one package and prints; `cli.verbs.table` lists them.

Errors propagate to `cli.running`.
"""

from __future__ import annotations

from copy import copy
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from cli import version
from cli.examples import EPILOGS, table
from cli.verbs.table import GROUPS, NOUNS, Verb, every

SETTINGS = {"help_option_names": ["-h", "--help"]}


class _Named(TyperCommand):
    """A verb as help pages of its groups list it, without importing its module."""

    def __init__(self, name: str, verb: Verb, panel: str) -> None:
        super().__init__(name, short_help=verb.says, rich_help_panel=panel)
        self.verb = verb


class _Group(TyperGroup):
    """A group whose verbs are imported when they are chosen."""

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        name, chosen, rest = super().resolve_command(ctx, args)
        return name, command(chosen.verb) if isinstance(chosen, _Named) else chosen, rest


class _Root(_Group):
    """All verbs. Its help page also lists the verbs of each noun."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self._all: dict[str, Any] = {}
        for panel, verbs in GROUPS.items():
            for verb in verbs:
                noun, _, name = verb.name.rpartition(" ")
                self._all[verb.name] = _Named(verb.name, verb, panel)
                if noun:
                    self._noun(noun, panel).commands[name] = _Named(name, verb, "Commands")
                else:
                    self.commands[name] = self._all[name]

    def _noun(self, noun: str, panel: str) -> _Group:
        if noun not in self.commands:
            self.commands[noun] = _Group(
                name=noun, help=NOUNS[noun], no_args_is_help=True, context_settings=SETTINGS, rich_help_panel=panel
            )
        group = self.commands[noun]
        assert isinstance(group, _Group)
        return group

    def format_help(self, ctx: Any, formatter: Any) -> None:
        page = copy(self)
        page.commands = self._all
        super(_Root, page).format_help(ctx, formatter)


def command(verb: Verb) -> Any:
    """Import a verb and return its command."""
    module, _, name = verb.at.partition(":")
    function = getattr(import_module(f"cli.verbs.{module}"), name)
    application = typer.Typer(
        add_completion=False, rich_markup_mode="rich", pretty_exceptions_enable=False, context_settings=SETTINGS
    )
    application.command(verb.name.rpartition(" ")[2], epilog=EPILOGS[function])(function)
    return typer.main.get_command(application)


def named(name: str) -> Any:
    """Import a verb by its name and return its command."""
    return command(next(verb for verb in every() if verb.name == name))


app = typer.Typer(
    cls=_Root,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings=SETTINGS,
    help="Build and maintain Kubernetes clusters for GPU research: one cluster per region, with its control plane and "
    "two etcds in a cloud, and workers there or at your own sites.",
    epilog=table(
        ("check", "check all specs in inventories/"),
        ("up lab", "build a real cluster on this machine, as root"),
        ("status lab", "show its health"),
        ("verify lab", "prove that it works"),
        ("destroy lab", "delete it"),
    )
    + "\n\nExit codes: 0 done, 1 failed, 2 bad input, 3 locked by another run,\n4 workers unreachable, 5 state of stacks unreadable, 130 interrupted.\n"
    'With --json, a failure prints {"error": {"code", "text", "exit_code"}}.\n'
    "Every verb that changes something takes --dry-run.",
)


def _version(requested: bool) -> None:
    if requested:
        typer.echo(version.version())
        raise typer.Exit


@app.callback()
def _top(
    debug: Annotated[
        bool,
        typer.Option("--debug", help="Show a traceback on errors. Anywhere on the line, or MENAGERIE_DEBUG=1."),
    ] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Declare the options of every verb. `cli.running` removes --debug from the line; here it is for the help page."""
