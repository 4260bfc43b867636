"""The time of the ledger: no single clock that jumps can move it.

Of three clocks, the API server's, this machine's, and the last time with what has passed since, the middle one counts.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime

from cluster.errors import FailedError

APART_S = 300
"""Of the first two clocks at the start, when there is no third."""


class LedgerClock:
    """A clock. wall: Unix time. steady: seconds that never jump, from any beginning."""

    def __init__(self, wall: Callable[[], float] = time.time, steady: Callable[[], float] = time.monotonic) -> None:
        self._wall, self._steady = wall, steady
        self._last: tuple[float, float] | None = None

    def at(self, api: datetime) -> int:
        """Return the time in whole seconds. api: the API server's.

        Errors: raises FailedError if at the start the two clocks differ by minutes, because nobody knows which is right.
        """
        said, own, steady = api.timestamp(), self._wall(), self._steady()
        if self._last is None:
            if abs(said - own) > APART_S:
                raise FailedError(
                    f"the API server's clock and this host's differ by {abs(said - own):.0f} s, so no time can be trusted; "
                    "`chronyc tracking` on the hosts says which is wrong",
                    code="ledger",
                )
            middle = said
        else:
            moment, since = self._last
            middle = sorted((said, own, moment + steady - since))[1]
        self._last = (middle, steady)
        return int(middle)
