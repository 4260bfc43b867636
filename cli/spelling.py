"""Messages call the command `./menagerie`, and pages `docs/...`, as a checkout has them. An installed one names its own."""

from __future__ import annotations

import io
import re
import sys

from cluster.project import TOOLKIT, is_installed

_IN_CHECKOUT, _INSTALLED = "./menagerie ", "menagerie "
_OWN = "aws-|azure-|gcp-|ci/|decisions/|explanation/|how-to/|reference/|runbooks/|start/"
_PAGE = re.compile(rf'(\x1b\[[\d;]*m|(?<!["\w.-])(?<![\w.-]/))docs/(?={_OWN})')
"""Not in addresses and paths of something else, and not the value of a JSON document."""


def adapt() -> None:
    """Write commands and pages to standard output and error as the user can use them: pasted, or opened."""
    if is_installed():
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                _rewrite(stream)


def installed(text: str) -> str:
    """Return a message of a checkout as an installed command prints it."""
    own = text.replace(_IN_CHECKOUT, _INSTALLED)
    return _PAGE.sub(lambda match: f"{match[1]}{TOOLKIT / 'docs'}/", own)


def _rewrite(stream: io.TextIOWrapper) -> None:
    write = stream.write

    def written(text: str) -> int:
        write(installed(text))
        return len(text)

    setattr(stream, "write", written)  # noqa: B010 - mypy refuses the assignment to a method
