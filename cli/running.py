"""Run the command. Every failure becomes a message, with --json a document, and an exit code."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from rich.text import Text
from typer.main import get_command

from cli import aliases, exits, interrupts
from cli.failures import Foreseen, explain, is_a
from cli.main import app
from cli.output import OutputError, errors, note, print_json, print_problems
from cli.verbs.table import chosen
from cluster.problems import SpecError


@interrupts.restoring_thread_reports()
def run(arguments: Sequence[str]) -> int:
    """Run a command line and return its exit code. Raises only what ends the interpreter."""
    debug = "--debug" in arguments or os.environ.get("MENAGERIE_DEBUG", "") not in ("", "0")
    line, renamed = aliases.current([argument for argument in arguments if argument != "--debug"] or ["--help"])
    try:
        if renamed:
            note(renamed)
        with interrupts.interrupts_raise():
            code = int(_command()(line, prog_name="menagerie", standalone_mode=False) or exits.DONE)
            if code == exits.INTERRUPTED:  # what typer makes of a KeyboardInterrupt
                raise KeyboardInterrupt
            return code
    except KeyboardInterrupt:
        interrupts.end_children()
        return _interrupted(line)
    except SystemExit as ended:  # the reader of the output is gone
        return ended.code if isinstance(ended.code, int) else exits.FAILED
    except Exception as error:  # noqa: BLE001 - outermost: every error becomes a message
        try:
            if debug:
                traceback.print_exc()
            return _failed(error, line, debug)
        except OSError:
            return exits.FAILED  # standard error cannot be written either


@cache
def _command() -> Callable[..., Any]:
    return get_command(app)


def _failed(error: Exception, arguments: list[str], debug: bool) -> int:
    if is_a(error, "operations.record.errors.TakenOverError"):
        interrupts.end_children()  # the heartbeat has interrupted them
    foreseen = explain(error)
    if foreseen is None:
        text = f"unexpected {type(error).__name__}: {error}"
        if not debug:
            text += f"\n  this is a bug; to see where: ./menagerie --debug {' '.join(arguments)}"
        foreseen = Foreseen(text, exits.FAILED, "unexpected")
    if isinstance(error, SpecError):
        print_problems(error.problems)
    else:
        errors.print(Text(f"error: {foreseen.text}", style="red"))
    if "--json" in arguments and not isinstance(error, OutputError):
        print_json(foreseen.to_json())
    return foreseen.exit_code


def _interrupted(arguments: list[str]) -> int:
    text = "interrupted"
    verb = chosen(arguments)
    if verb and verb.name == "verify":
        text += "; `./menagerie up` of the cluster repairs what a proof broke"
    elif verb and verb.changes:
        text += "; nothing is lost: run the same command again to continue"
    errors.print(text, style="yellow", markup=False)
    if "--json" in arguments:
        print_json({"error": {"code": "interrupted", "text": text, "exit_code": exits.INTERRUPTED}})
    return exits.INTERRUPTED
