"""The question before something is changed, and what to run where nobody can be asked."""

from __future__ import annotations

import sys

from cli.output import errors
from cluster.errors import NotConfirmedError


def refuse_unasked(again: str, *, to: str = "", see: tuple[str, str] | None = None, as_json: bool = False) -> None:
    """NotConfirmedError where nobody can be asked.

    again: the command that does it, without its first word and --yes; to: what it does, where "go on" says too little;
    see: what can be seen first, and the command that shows it; as_json: a document is wanted, and no question.
    """
    if sys.stdin.isatty() and not as_json:
        return
    reason = "--json asks nothing" if as_json else "no terminal to ask at"
    first = f"\n  to see first {see[0]}: ./menagerie {see[1]}" if see else ""
    raise NotConfirmedError(
        f"{reason}, and nothing was touched; to {to or 'go on'} without being asked: ./menagerie {again} --yes{first}"
    )


def confirm(
    question: str,
    again: str,
    *,
    to: str = "",
    see: tuple[str, str] | None = None,
    as_json: bool = False,
    stopped: str = "nothing was touched",
) -> None:
    """NotConfirmedError unless somebody says yes. stopped: how things are when nobody does."""
    refuse_unasked(again, to=to, see=see, as_json=as_json)
    if _answer(f"{question} [y/N] ").lower() not in ("y", "yes"):
        raise NotConfirmedError(f"stopped, because you did not say yes; {stopped}", declined=True)


def confirm_name(
    warning: str, cluster: str, again: str, *, to: str, see: tuple[str, str] | None = None, as_json: bool = False
) -> None:
    """NotConfirmedError unless somebody gives the cluster's name: for what can't be taken back."""
    refuse_unasked(again, to=to, see=see, as_json=as_json)
    errors.print(warning, style="bold", markup=False)
    answer = _answer("Name of the cluster, to go on: ")
    if answer != cluster:
        raise NotConfirmedError(f'"{answer}" is not {cluster}; nothing was touched', declined=True)


def dry_run_of(again: str) -> tuple[str, str]:
    """What can be seen first of a command that has --dry-run."""
    return "what it would do", f"{again} --dry-run"


def evictions(pods: int, scratch: int) -> str:
    """What draining costs, for a question. scratch: how many of the pods have files on their node."""
    return f"{pods} pods are evicted" + (f", {scratch} of them with files on their node, which end" if scratch else "")


def _answer(question: str) -> str:
    """One line from the terminal, "" at its end. The question goes where progress goes."""
    errors.print(question, end="", markup=False)
    return sys.stdin.readline().strip()
