"""A bill as CSV: a line for each cluster, team, namespace, person, pool and use."""

from __future__ import annotations

import csv
import io

from controllers.metering.bill import Bill, Line, Sums

HEAD = ("days", "zone", *Line._fields, *Sums._fields, "complete")
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""A spreadsheet runs cells that begin so: a team's name is text that other people wrote."""


def to_csv(bill: Bill) -> str:
    """Return the text, with line breaks as in RFC 4180."""
    file = io.StringIO()
    writer = csv.writer(file)
    writer.writerow(HEAD)
    complete = "no" if bill.troubles else "running" if bill.running else "yes"
    for line, sums in bill.lines():
        words = [_plain(str(word)) for word in line]
        writer.writerow([bill.span.name, bill.span.zone, *words, *(f"{value:.6f}" for value in sums), complete])
    return file.getvalue()


def _plain(word: str) -> str:
    return f"'{word}" if word.startswith(_FORMULA) else word
