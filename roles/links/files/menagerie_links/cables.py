"""Compare cables with the hosts file, by what switches announce (LLDP). Pure; standard library only."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

Settings = Mapping[str, Any]
# Switches abbreviate: Arista's et1/1 and SONiC's Eth1/1 are Ethernet1/1.
_ETHERNET = re.compile(r"^(ethernet|eth|et)\s*(?=\d)")


class Heard(NamedTuple):
    """A switch and its port, as announced. ports: its identity first, then its description."""

    switch: str
    ports: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.switch} {self.ports[0] if self.ports else '(no port)'}"


class End(NamedTuple):
    """A host's link, and the other end of its cable according to the hosts file."""

    host: str
    link: str
    switch: str
    port: str

    def __str__(self) -> str:
        return f"{self.switch} {self.port}"


def parse_lldp(said: Mapping[str, Any]) -> dict[str, list[Heard]]:
    """Parse `lldpctl -f json0`, in which everything is a list: interface -> switches heard there."""
    switches: dict[str, list[Heard]] = {}
    for part in said.get("lldp", []):
        for shown in part.get("interface", []):
            if shown.get("via", "LLDP") != "LLDP":
                continue
            chassis = shown.get("chassis", [{}])[0]
            port = shown.get("port", [{}])[0]
            name = _values(chassis, "name") or _values(chassis, "id")
            heard = Heard(name[0] if name else "", (*_values(port, "id"), *_values(port, "descr")))
            switches.setdefault(shown["name"], []).append(heard)
    return switches


def _values(part: Mapping[str, Any], key: str) -> tuple[str, ...]:
    return tuple(str(entry["value"]) for entry in part.get(key, []) if entry.get("value"))


def ends(host: str, links: Mapping[str, Settings]) -> list[End]:
    """Return one host's cables that are in the hosts file."""
    return [End(host, name, link["switch"], str(link["port"])) for name, link in links.items() if "switch" in link]


def is_switch(said: str, expected: str) -> bool:
    """Return whether a switch's own name is the one in the hosts file; either may include its domain."""
    said, expected = said.lower(), expected.lower()
    return said == expected or said.startswith(f"{expected}.") or expected.startswith(f"{said}.")


def is_port(said: str, expected: str) -> bool:
    """Compare names of ports. A bare number is a name's last one: 17 is swp17, Ethernet1/17 and Eth17(Port17)."""
    if expected.isdigit():
        last = re.findall(r"\d+", said)
        return bool(last) and int(last[-1]) == int(expected)
    return _ETHERNET.sub("ethernet", said.lower()) == _ETHERNET.sub("ethernet", expected.lower())


def leads_to(heard: Heard, end: End) -> bool:
    return is_switch(heard.switch, end.switch) and any(is_port(port, end.port) for port in heard.ports)


def swapped_with(mine: End, heard: Heard, others: Mapping[tuple[str, str], tuple[End, list[Heard]]]) -> str:
    """Return whose cable it seems to be: "swapped with" if the other hears our switch, otherwise whose place it is."""
    for (host, link), (other, theirs) in others.items():
        if (host, link) == (mine.host, mine.link) or not leads_to(heard, other):
            continue
        name = link if host == mine.host else f"{host} {link}"
        if any(leads_to(each, mine) for each in theirs):
            return f"; looks swapped with {name}"
        return f"; that is where {name} should be"
    return ""


def verdict(
    mine: End, heard: list[Heard], others: Mapping[tuple[str, str], tuple[End, list[Heard]]], carrier: bool, hint: str
) -> str:
    """Return what is wrong with one cable, "" if nothing is. hint: why nothing might be heard."""
    if any(leads_to(each, mine) for each in heard):
        return ""
    if heard:
        swap = next((text for each in heard if (text := swapped_with(mine, each, others))), "")
        return f"{' and '.join(map(str, heard))}, the hosts file says {mine}{swap}"
    if not carrier:
        return f"no link: no cable, or a port that is off; the hosts file says {mine}"
    return f"nothing is heard from {mine}{hint}"
