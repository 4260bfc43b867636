"""Compare this host's clock with the API servers', before either side checks the other's certificates by its own."""

from __future__ import annotations

import datetime
import email.utils
import http.client
import ssl
import time

from . import Refused

MOST_SKEW = 60
"""Seconds. The controller manager backdates certificates by five minutes, but leases are renewed every ten seconds, and
a clock that is a minute off drifts further."""


def api_time(endpoint: str) -> float | None:
    """Return the API's time from the Date header of a health path; None if it doesn't answer.

    Certificates are not verified: with a wrong clock, each looks expired or not yet valid. Nothing secret is sent, and
    an impostor can only keep this host from joining.
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


def _utc(seconds: float) -> str:
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def refuse_skew(endpoint: str) -> None:
    """Refused if the two clocks differ by more than `MOST_SKEW`."""
    theirs, ours = api_time(endpoint), time.time()
    if theirs is None or abs(ours - theirs) <= MOST_SKEW:
        return
    word = "ahead of" if ours > theirs else "behind"
    raise Refused(
        f"this host's clock says {_utc(ours)}, that of the API at {endpoint} {_utc(theirs)}: it is "
        f"{abs(ours - theirs):.0f} s {word} it, and at most {MOST_SKEW} s are accepted: certificates would look "
        "expired or not yet valid. See 'chronyc tracking' and 'chronyc sources'; if servers answer, 'chronyc "
        "makestep' sets the clock at once. Then run this again"
    )
