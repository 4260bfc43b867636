"""Follow the results of tests in ginkgo's log.

The suite can post its progress to an address as well (`--progress-report-url`), but e2e.test of 1.36 posts only its own
start and end, and no test in between.
"""

from __future__ import annotations

import re
from collections.abc import Callable

Say = Callable[[str], None]
_RULE = "------------------------------"
_ENDED = re.compile(r"• (?:\[([A-Z ]+)\] )?\[\d+\.\d+ seconds\]")
_LABELS = re.compile(r" \[[^\[\]]*\]$")


class Progress:
    """Reads the log line by line, and calls `say` for each of `total` tests when it ends.

    Between two rules the log has a test's name and its result: the name first if one process runs all tests, and last if
    there are several processes. states: test -> result, in ginkgo's word.
    """

    def __init__(self, total: int, say: Say) -> None:
        self._total, self._say = total, say
        self.states: dict[str, str] = {}
        self._name, self._state = "", ""

    def __call__(self, line: str) -> None:
        if line == _RULE:
            self._name, self._state = "", ""
        elif ended := _ENDED.match(line):
            self._state = (ended[1] or "passed").lower()
        elif line.startswith("[sig-") and not self._name:
            self._name = _LABELS.sub("", line).replace(" [It] ", " ")
        else:
            return
        if self._name and self._state:
            self.states[self._name] = self._state
            self._say(f"[{len(self.states)}/{self._total}] {self._state}  {self._name}")
            self._state = ""
