"""A port's settings by priority, with mlnx_qos of mlnx-tools or dcb of iproute2."""

from __future__ import annotations

import re
from typing import NamedTuple

from .desired import DCBX, PFC, TRUST, Settings
from .edge import tell
from .ports import Port


class Qos(NamedTuple):
    """A port's settings by priority. mapped: DSCP -> priority."""

    states: dict[str, str | None]
    mapped: dict[int, str]


def parse_mlnx_qos(text: str) -> Qos:
    """Parse mlnx_qos. It prints eight DSCPs a line, so a priority may have several lines."""
    trust = re.search(r"^Priority trust state: (\w+)", text, re.MULTILINE)
    enabled = re.search(r"^\s*enabled((?:\s+[01]){8})", text, re.MULTILINE)
    dcbx = re.search(r"^DCBX mode: (\w+) controlled", text, re.MULTILINE)
    lines = re.findall(r"^\s*prio:(\d) dscp:([\d,]*)", text, re.MULTILINE)
    states = {
        DCBX: dcbx[1].lower() if dcbx else None,
        TRUST: trust[1] if trust else None,
        PFC: ",".join(enabled[1].split()) if enabled else None,
    }
    return Qos(states, {int(dscp): priority for priority, listed in lines for dscp in listed.split(",") if dscp})


def parse_dcb(apps: str, pfc: str, dcbx: str) -> Qos:
    """Parse dcb(8) of iproute2. A port trusts DSCP once it has a rule for one."""
    rules = dict(re.findall(r"\b(\d+):(\d)\b", "".join(re.findall(r"dscp-prio (.*)", apps))))
    states = dict(re.findall(r"\b(\d):(on|off)\b", pfc))
    values = {
        DCBX: "os" if "host" in dcbx.split() else "firmware",
        TRUST: "dscp" if rules else "pcp",
        PFC: ",".join("1" if states.get(str(n)) == "on" else "0" for n in range(8)) if states else None,
    }
    return Qos(values, {int(dscp): priority for dscp, priority in rules.items()})


class MlnxQos:
    """mlnx_qos of mlnx-tools."""

    def __init__(self, port: Port) -> None:
        self.edge, self.words = port.edge, ("mlnx_qos", "-i", port.interface)

    def look(self) -> Qos:
        return parse_mlnx_qos(tell(self.edge, *self.words))

    def set(self, name: str, value: str, settings: Settings) -> None:
        dscp = name.rpartition(" ")[2]
        option = {
            DCBX: ("--dcbx", "os"),
            TRUST: ("--trust", value),
            PFC: ("--pfc", value),
        }.get(name, ("--dscp2prio", f"set,{dscp},{value}"))
        tell(self.edge, *self.words, *option)


class Dcb:
    """dcb of iproute2, for every driver in Linux."""

    def __init__(self, port: Port) -> None:
        self.edge, self.interface = port.edge, port.interface

    def _tell(self, *words: str) -> str:
        return tell(self.edge, "dcb", "-N", *words)

    def look(self) -> Qos:
        shown = [self._tell(what, "show", "dev", self.interface) for what in ("app", "pfc", "dcbx")]
        return parse_dcb(*shown)

    def set(self, name: str, value: str, settings: Settings) -> None:
        dev = ("dev", self.interface)
        if name == DCBX:
            self._tell("dcbx", "set", *dev, "host", "ieee")
        elif name == PFC:
            on = [f"{n}:on" for n, state in enumerate(value.split(",")) if state == "1"]
            self._tell("pfc", "set", *dev, "prio-pfc", "all:off", *on)
        else:
            pairs = [(settings["dscp"], settings["priority"]), (settings["cnp_dscp"], settings["cnp_priority"])]
            self._tell("app", "replace", *dev, "dscp-prio", *(f"{dscp}:{priority}" for dscp, priority in pairs))
