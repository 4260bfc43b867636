"""Ask before a change, or say what to run if there is no terminal."""

from __future__ import annotations

import sys

from cli.output import errors
from cluster.errors import NotConfirmedError


def refuse_unasked(again: str, *, to: str = "", see: tuple[str, str] | None = None, as_json: bool = False) -> None:
    """Raise NotConfirmedError if nobody can be asked.

    again: the command without its first word and --yes. to: what it does, if "continue" says too little.
    see: what can be looked at first, and the command that shows it. as_json: print a document, ask nothing.
    """
    if sys.stdin.isatty() and not as_json:
        return
    reason = "--json does not ask" if as_json else "there is no terminal to ask on"
    first = f"\n  to see {see[0]} first: ./menagerie {see[1]}" if see else ""
    raise NotConfirmedError(
        f"{reason}. Nothing was changed. To {to or 'continue'} without a question: ./menagerie {again} --yes{first}"
    )


def confirm(
    question: str,
    again: str,
    *,
    to: str = "",
    see: tuple[str, str] | None = None,
    as_json: bool = False,
    stopped: str = "Nothing was changed.",
) -> None:
    """Raise NotConfirmedError unless somebody says yes. stopped: the state that a "no" leaves."""
    refuse_unasked(again, to=to, see=see, as_json=as_json)
    if _answer(f"{question} [y/N] ").lower() not in ("y", "yes"):
        raise NotConfirmedError(f"stopped, because you did not confirm. {stopped}", declined=True)


def confirm_name(
    warning: str, cluster: str, again: str, *, to: str, see: tuple[str, str] | None = None, as_json: bool = False
) -> None:
    """Raise NotConfirmedError unless somebody types the cluster's name. For what cannot be undone."""
    refuse_unasked(again, to=to, see=see, as_json=as_json)
    errors.print(warning, style="bold", markup=False)
    answer = _answer("Type the name of the cluster to continue: ")
    if answer != cluster:
        raise NotConfirmedError(f'"{answer}" is not {cluster}. Nothing was changed.', declined=True)


def dry_run_of(again: str) -> tuple[str, str]:
    """Return `see` for a command that has --dry-run."""
    return "what it would do", f"{again} --dry-run"


def evictions(pods: int, scratch: int) -> str:
    """Return what draining costs, for a question. scratch: how many of the pods have files on their node."""
    return f"{pods} pods are evicted" + (f"; {scratch} of them lose files on their node" if scratch else "")


def _answer(question: str) -> str:
    """Read a line from the terminal, "" at its end. The question goes to standard error, like progress."""
    errors.print(question, end="", markup=False)
    return sys.stdin.readline().strip()
