"""CFG-022: values that `init` marked for their owner to replace."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from cluster.positions import Positions
from cluster.problems import Problem
from cluster.reading import read_text

MARK = "PLACEHOLDER:"
"""Start of the comment on each value that the owner must replace."""
_MARKED = re.compile(rf"(?:^|\s)#.*?({MARK})\s*(.*)")
_HINT = f"write your own value, and delete the comment with {MARK.removesuffix(':')}"


def left(positions: Positions) -> Iterator[Problem]:
    """Warn of each mark that is left in a cluster.yaml and its hosts files."""
    documents = [positions.document, *(marks.document for marks in positions.hosts.values())]
    for file in (document.file for document in documents if document.data is not None):
        for number, line in enumerate(read_text(Path(file)).splitlines(), 1):
            if mark := _MARKED.search(line):
                message = f"the value is still the one that init wrote: {mark[2]}"
                yield Problem("CFG-022", message, _HINT, file, number, mark.start(1) + 1, severity="warning")
