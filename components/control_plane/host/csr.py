"""Reads the contents of a certificate signing request from its DER.

A strict parser of the few ASN.1 types of RFC 2986 and RFC 5280: anything unexpected is an error. openssl's text output
is not a safe input: a name may contain ", IP Address:".
"""

from __future__ import annotations

import base64
import ipaddress
import re
from dataclasses import dataclass
from typing import Iterator

from .der import Element, Malformed, elements, expect, walk

_SEQUENCE, _SET, _OID, _BOOLEAN, _OCTETS, _INTEGER = 0x30, 0x31, 0x06, 0x01, 0x04, 0x02
_ATTRIBUTES = 0xA0
_STRINGS = {0x0C: "utf-8", 0x13: "ascii", 0x16: "ascii"}  # UTF8String, PrintableString, IA5String
_COMMON_NAME, _ORGANIZATION = b"\x55\x04\x03", b"\x55\x04\x0a"
_EXTENSION_REQUEST = bytes.fromhex("2a864886f70d01090e")
_SUBJECT_ALT_NAME = b"\x55\x1d\x11"
_DNS, _ADDRESS = 0x82, 0x87


@dataclass(frozen=True)
class Request:
    """The names in a request. others: number of alternative names other than DNS names and IPv4 addresses.

    key: the SubjectPublicKeyInfo's contents, which identify the key.
    """

    common_name: str
    organizations: tuple[str, ...]
    dns_names: tuple[str, ...] = ()
    addresses: tuple[ipaddress.IPv4Address, ...] = ()
    others: int = 0
    key: bytes = b""


def parse(pem: str) -> Request:
    """Read one PEM request. Malformed if it is anything else."""
    match = re.fullmatch(
        r"\s*-----BEGIN CERTIFICATE REQUEST-----\s([A-Za-z0-9+/=\s]+)-----END CERTIFICATE REQUEST-----\s*", pem
    )
    if not match:
        raise Malformed("not one PEM block of a certificate request")
    (outer,) = elements(base64.b64decode("".join(match[1].split())), 1)
    info = elements(expect(outer, _SEQUENCE), 3)[0]
    version, subject, key, attributes = elements(expect(info, _SEQUENCE), 4)
    if expect(version, _INTEGER) != b"\x00":
        raise Malformed("not version 1 of a request")
    name, organizations = _subject(expect(subject, _SEQUENCE))
    dns_names, addresses, others = _alternative_names(expect(attributes, _ATTRIBUTES))
    return Request(name, organizations, dns_names, addresses, others, expect(key, _SEQUENCE))


def _text(element: Element) -> str:
    try:
        return element[1].decode(_STRINGS[element[0]])
    except (KeyError, UnicodeDecodeError):
        raise Malformed("a name that isn't plain text") from None


def _subject(data: bytes) -> tuple[str, tuple[str, ...]]:
    names: list[str] = []
    organizations: list[str] = []
    for relative in walk(data):
        for attribute in walk(expect(relative, _SET)):
            oid, value = elements(expect(attribute, _SEQUENCE), 2)
            kind = expect(oid, _OID)
            if kind == _COMMON_NAME:
                names.append(_text(value))
            elif kind == _ORGANIZATION:
                organizations.append(_text(value))
            else:
                raise Malformed("the subject has more than a common name and organizations")
    if len(names) != 1:
        raise Malformed(f"{len(names)} common names")
    return names[0], tuple(organizations)


def _alternative_names(data: bytes) -> tuple[tuple[str, ...], tuple[ipaddress.IPv4Address, ...], int]:
    dns_names: list[str] = []
    addresses: list[ipaddress.IPv4Address] = []
    others = 0
    for tag, value in _general_names(data):
        if tag == _DNS:
            dns_names.append(_text((0x16, value)))
        elif tag == _ADDRESS and len(value) == 4:
            addresses.append(ipaddress.IPv4Address(value))
        else:
            others += 1
    return tuple(dns_names), tuple(addresses), others


def _general_names(attributes: bytes) -> Iterator[Element]:
    for attribute in walk(attributes):
        oid, values = elements(expect(attribute, _SEQUENCE), 2)
        if expect(oid, _OID) != _EXTENSION_REQUEST:
            raise Malformed("an attribute other than requested extensions")
        (extensions,) = elements(expect(values, _SET), 1)
        for extension in walk(expect(extensions, _SEQUENCE)):
            parts = [part for part in walk(expect(extension, _SEQUENCE)) if part[0] != _BOOLEAN]
            if len(parts) != 2 or expect(parts[0], _OID) != _SUBJECT_ALT_NAME:
                raise Malformed("an extension other than alternative names")
            (names,) = elements(expect(parts[1], _OCTETS), 1)
            yield from walk(expect(names, _SEQUENCE))
