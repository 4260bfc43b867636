"""Reads certificates of this host: who signed them, and how much of their life is left (RFC 5280)."""

from __future__ import annotations

import base64
import calendar
import re
import time
from dataclasses import dataclass

from .der import Element, Malformed, elements, expect, walk

_SEQUENCE, _VERSION, _UTC_TIME, _GENERALIZED_TIME = 0x30, 0xA0, 0x17, 0x18
_PEM = re.compile(r"-----BEGIN CERTIFICATE-----\s([A-Za-z0-9+/=\s]+)-----END CERTIFICATE-----")
RENEW_AFTER = 2 / 3
"""Share of a certificate's life."""


@dataclass(frozen=True)
class Certificate:
    """subject, issuer: names in DER. begins, ends: Unix time."""

    subject: bytes
    issuer: bytes
    begins: float
    ends: float

    def is_due(self, signer: Certificate, now: float) -> bool:
        """Return whether to renew it: two thirds of its life are over, or another authority signs now."""
        return self.issuer != signer.subject or now >= self.begins + (self.ends - self.begins) * RENEW_AFTER


def blocks(pem: str) -> list[bytes]:
    """Return all certificates of a PEM text, in DER. Malformed if there is none."""
    certificates = [base64.b64decode("".join(text.split())) for text in _PEM.findall(pem)]
    if not certificates:
        raise Malformed("no PEM block of a certificate")
    return certificates


def first(pem: str) -> Certificate:
    """Return the first certificate of a PEM text. Malformed if there is none."""
    return read(blocks(pem)[0])


def read(der: bytes) -> Certificate:
    """Read one certificate in DER. Malformed if it is anything else."""
    (outer,) = elements(der, 1)
    parts = list(walk(expect(elements(expect(outer, _SEQUENCE), 3)[0], _SEQUENCE)))
    if parts and parts[0][0] == _VERSION:
        del parts[0]
    if len(parts) < 6:
        raise Malformed("an incomplete certificate")
    _serial, _algorithm, issuer, validity, subject = parts[:5]
    begins, ends = (_unix(each) for each in elements(expect(validity, _SEQUENCE), 2))
    return Certificate(expect(subject, _SEQUENCE), expect(issuer, _SEQUENCE), begins, ends)


def names(der: bytes) -> bytes:
    """Return the contents of a complete name, as in `Certificate`."""
    return expect(elements(der, 1)[0], _SEQUENCE)


def _unix(element: Element) -> float:
    """Return Unix time. RFC 5280, 4.1.2.5: years have two digits until 2049, then four; times are UTC, with seconds."""
    tag, text = element[0], element[1].decode("ascii")
    if tag == _UTC_TIME:
        text = ("19" if int(text[:2]) >= 50 else "20") + text
    elif tag != _GENERALIZED_TIME:
        raise Malformed("a time of another type")
    try:
        return float(calendar.timegm(time.strptime(text, "%Y%m%d%H%M%SZ")))
    except ValueError:
        raise Malformed(f"not a time: {text}") from None
