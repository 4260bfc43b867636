"""Messages for errors: Menagerie's, Typer's, the API client's and the operating system's."""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass
from typing import Any

from typer.exceptions import TyperException

from cli import exits, extras
from cluster.errors import MenagerieError, TimedOutError
from cluster.problems import Problem

_WHICH_PART = (
    "\n  `./menagerie status` of the cluster shows which part is down; "
    'docs/start/lab.md, "When something does not come up", says where to look next'
)


@dataclass(frozen=True)
class Foreseen:
    """An error with a known meaning. text: for people. kind: for programs; it stays when the text changes."""

    text: str
    exit_code: int
    kind: str
    problems: tuple[Problem, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the document that a failed verb prints with --json."""
        error: dict[str, Any] = {"code": self.kind, "text": self.text, "exit_code": self.exit_code}
        if self.problems:
            error["problems"] = [problem.to_json() for problem in self.problems]
        return {"error": error}


def explain(error: Exception) -> Foreseen | None:
    """Return the message for an error; None if it is unexpected."""
    if isinstance(error, MenagerieError):
        down = isinstance(error, TimedOutError) or is_a(error, "urllib3.exceptions.HTTPError")
        text = f"{error}{_WHICH_PART}" if down else str(error)
        return Foreseen(text, error.exit_code, error.code, tuple(error.problems))
    if isinstance(error, TyperException):
        return Foreseen(_usage(error), error.exit_code, "usage")
    if is_a(error, "kubernetes.client.exceptions.ApiException"):
        status, reason, body = (getattr(error, name, "") for name in ("status", "reason", "body"))
        return Foreseen(f"the API server answers {status} {reason}: {body}", exits.FAILED, "api")
    if is_a(error, "urllib3.exceptions.HTTPError"):
        return Foreseen(f"the API server does not answer: {error}{_WHICH_PART}", exits.FAILED, "api-unreachable")
    if isinstance(error, ModuleNotFoundError) and (missing := extras.missing(error)):
        return Foreseen(missing, exits.FAILED, "not-installed")
    return _of_the_machine(error) if isinstance(error, OSError) else None


def is_a(error: Exception, kind: str) -> bool:
    """Return whether an error is of a class, given by its full name so that its module need not be imported."""
    return any(f"{base.__module__}.{base.__qualname__}" == kind for base in type(error).__mro__)


def _usage(error: TyperException) -> str:
    context = getattr(error, "ctx", None)
    command = context.command_path if context else "menagerie"
    text = error.format_message().rstrip(".")
    if not text and context:  # no verb was given; the help page is above
        text = f"choose {' or '.join(context.command.list_commands(context))}"
    return f"{text}\n  see: {command} --help"


def _of_the_machine(error: OSError) -> Foreseen | None:
    """Explain errors of permissions, space and paths, which an operator can fix without knowing the code."""
    if error.errno in (errno.EACCES, errno.EPERM):
        what = f": {error.filename}" if error.filename else ""
        text = f"permission denied on this machine{what}; run the command as root or the user who built the cluster"
        return Foreseen(text, exits.FAILED, "permission")
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        where = f" at {error.filename}" if error.filename else ""
        text = f"no space is left{where}; `df -h` shows which disk is full: free space and run the same command again"
        return Foreseen(text, exits.FAILED, "no-space")
    if error.errno == errno.EROFS:
        where = f" at {error.filename}" if error.filename else ""
        text = f"the file system{where} is read-only; run the command from a checkout that you may write to"
        return Foreseen(text, exits.FAILED, "read-only")
    if error.filename and error.strerror:
        return Foreseen(f"{os.fsdecode(error.filename)}: {error.strerror}", exits.FAILED, "file")
    return None
