"""This host's clock against that of the API servers, before either side judges the other's certificates by its own."""

from __future__ import annotations

import datetime
import email.utils
import http.client
import ssl
import time

from . import Refused

MOST_SKEW = 60
"""Seconds. The controller manager's signer makes certificates valid from five minutes before; leases are renewed every ten
seconds, and a clock that is a minute off will not stop there."""


def api_time(endpoint: str) -> float | None:
    """The API's clock as it says it on a health path; None where it doesn't answer.

    With a wrong clock here every certificate looks expired or not yet valid, so none is asked for: nothing secret is
    sent, and the worst that a liar gets is that this host doesn't join.
    """
    host, _, port = endpoint.rpartition(":")
    connection = http.client.HTTPSConnection(host, int(port), timeout=10, context=ssl._create_unverified_context())
    try:
        connection.request("HEAD", "/livez")
        date = connection.getresponse().headers.get("Date")
        return email.utils.parsedate_to_datetime(date).timestamp() if date else None
    except (OSError, ValueError, http.client.HTTPException):
        return None
    finally:
        connection.close()


def _told(seconds: float) -> str:
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def refuse_skew(endpoint: str) -> None:
    """Refused where the two clocks differ by more than `MOST_SKEW`."""
    theirs, ours = api_time(endpoint), time.time()
    if theirs is None or abs(ours - theirs) <= MOST_SKEW:
        return
    word = "ahead of" if ours > theirs else "behind"
    raise Refused(
        f"this host's clock says {_told(ours)}, that of the API at {endpoint} {_told(theirs)}: it is "
        f"{abs(ours - theirs):.0f} s {word} it, and at most {MOST_SKEW} s are accepted, for certificates would look expired "
        "or not yet valid. See 'chronyc tracking' and 'chronyc sources'; with servers that answer, 'chronyc makestep' sets "
        "the clock at once. Then run this again"
    )
