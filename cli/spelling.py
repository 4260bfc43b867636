"""Messages call the command `./menagerie`, as a checkout has it. An installed one is on PATH, and its messages say so."""

from __future__ import annotations

import io
import sys

from cluster.project import is_installed

_IN_CHECKOUT, _INSTALLED = "./menagerie ", "menagerie "


def adapt() -> None:
    """Write commands to standard output and error as the user types them, so that they work when pasted."""
    if is_installed():
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                _rewrite(stream)


def _rewrite(stream: io.TextIOWrapper) -> None:
    write = stream.write

    def written(text: str) -> int:
        write(text.replace(_IN_CHECKOUT, _INSTALLED))
        return len(text)

    setattr(stream, "write", written)  # noqa: B010 - mypy refuses the assignment to a method
