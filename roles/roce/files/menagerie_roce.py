"""Sets the RDMA ports of this host for its fabric, reads back what it set, and sets it again when a link comes back.

    menagerie-roce apply [--check] [--json] [RAIL ...]   0 as wanted, 1 refused or not to be had, 2 --check would change it
    menagerie-roce facts [RAIL ...]                      what `menagerie roce test` needs to know, as JSON
    menagerie-roce watch RAIL                            apply, then again whenever the port comes up; for systemd

Placed by Menagerie's role roce. Standard library only. Nothing of this outlives a reboot or a reload of the driver in the
card itself, so a unit a rail does it anew.
"""

from __future__ import annotations

import argparse
import errno
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

SETTINGS = "/etc/menagerie/roce.json"
NET, IB, PCI = "/sys/class/net", "/sys/class/infiniband", "/sys/bus/pci/devices"
DRIVERS = ("mlx5_core", "bnxt_en")
LISTED = "ConnectX-4 or newer, or another listed NIC"
# pci.ids. Of what is here only for its name, the driver says that it can't be used.
CARDS = {
    "15b3:1003": "ConnectX-3", "15b3:1007": "ConnectX-3 Pro", "15b3:1013": "ConnectX-4", "15b3:1015": "ConnectX-4 Lx",
    "15b3:1017": "ConnectX-5", "15b3:1019": "ConnectX-5 Ex", "15b3:101b": "ConnectX-6", "15b3:101d": "ConnectX-6 Dx",
    "15b3:101f": "ConnectX-6 Lx", "15b3:1021": "ConnectX-7", "15b3:1023": "ConnectX-8", "15b3:a2d6": "BlueField-2",
    "15b3:a2dc": "BlueField-3", "14e4:1750": "Broadcom BCM57508 (Thor)", "14e4:1760": "Broadcom BCM57608 (Thor 2)",
    "8086:1572": "Intel X710", "8086:1583": "Intel XL710", "8086:1592": "Intel E810-C", "8086:1593": "Intel E810-C",
}  # fmt: skip
PAUSE, DCBX, TRUST, PFC, TOS = "global pause", "DCBX", "trust", "PFC", "ToS of RDMA-CM"
NP, RP, TC, CNP_DSCP, CNP_PRIO = "ECN, receiving", "ECN, sending", "traffic class", "DSCP of CNPs", "priority of CNPs"
ACCEL, MTU, SPEED = "recovery from loss", "link MTU", "speed in Gbit/s"
# Setting -> why a host without it can still be used.
OPTIONAL = {
    PAUSE: "this driver has no pause frames to turn off",
    DCBX: "this mlnx_qos does not say who controls it",
    TC: "this driver has no traffic class for a whole port; NCCL and RDMA-CM mark their packets themselves",
    NP: "this driver has no switch for it; the firmware's default counts, which is on",
    RP: "this driver has no switch for it; the firmware's default counts, which is on",
    CNP_DSCP: "this driver does not let it be set; the firmware's default counts, which is 48",
    CNP_PRIO: "this driver does not let it be set; the firmware's default counts, which is 6",
    SPEED: "the link is down",
    ACCEL: "neither mlxreg nor mstreg is here, or the card has no register ROCE_ACCL",
}
NOT_SET = "not set"
# Only looked at: the MTU is the matter of whoever names and sets up links, the speed the cable's.
LOOKED_AT = (MTU, SPEED)


class Refused(Exception):
    """What keeps a port from being used, for who has to mend it."""


class Between(NamedTuple):
    """Any number of a range."""

    low: int
    high: int

    def __str__(self) -> str:
        return f"{self.low} to {self.high}"


Settings = dict[str, Any]
Value = str | Between
Differ = dict[str, tuple[str, str]]
"""Setting -> (what it is, what it should be)."""


class Qos(NamedTuple):
    """What a port does by priority. mapped: DSCP -> priority."""

    states: dict[str, str | None]
    mapped: dict[int, str]


# --- the edge: everything that touches the host ---------------------------------------------------------------------


class Edge:
    """The host's files and tools."""

    def __init__(self, root: str = "/") -> None:
        self.root = root

    def _at(self, path: str) -> str:
        return os.path.join(self.root, path.lstrip("/"))

    def read(self, path: str) -> str | None:
        """Text without its last newline. None where there is no such file, or it says nothing (EINVAL of a port's speed)."""
        try:
            with open(self._at(path)) as handle:
                return handle.read().strip()
        except OSError:
            return None

    def write(self, path: str, text: str) -> None:
        try:
            with open(self._at(path), "w") as handle:
                handle.write(text)
        except OSError as error:
            raise Refused(f"{path} refuses {text}: {error.strerror}") from None

    def names(self, path: str) -> list[str]:
        try:
            return sorted(os.listdir(self._at(path)))
        except OSError:
            return []

    def target(self, path: str) -> str:
        """Last name of where a symbolic link leads; "" without one."""
        return os.path.basename(os.path.realpath(self._at(path))) if os.path.lexists(self._at(path)) else ""

    def make(self, path: str) -> None:
        """A folder of configfs; making it is what brings up its files."""
        try:
            os.makedirs(self._at(path), exist_ok=True)
        except OSError as error:
            raise Refused(f"{path} can't be made: {error.strerror}") from None

    def has(self, command: str) -> bool:
        return shutil.which(command) is not None

    def run(self, *words: str) -> tuple[int, str]:
        """(exit code, what it said)."""
        done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
        return done.returncode, done.stdout + done.stderr


def tell(edge: Edge, *words: str) -> str:
    """What a tool said; Refused where it failed."""
    code, said = edge.run(*words)
    if code:
        raise Refused(f"{' '.join(words)}: {said.strip() or f'exit code {code}'}")
    return said


# --- what the host's tools say, as plain values ----------------------------------------------------------------------


def parse_mlnx_qos(text: str) -> Qos:
    """mlnx_qos prints eight DSCPs a line, so a priority may have several lines."""
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
    """dcb(8) of iproute2. A port trusts DSCP once it has one rule for a DSCP."""
    rules = dict(re.findall(r"\b(\d+):(\d)\b", "".join(re.findall(r"dscp-prio (.*)", apps))))
    states = dict(re.findall(r"\b(\d):(on|off)\b", pfc))
    found = {
        DCBX: "os" if "host" in dcbx.split() else "firmware",
        TRUST: "dscp" if rules else "pcp",
        PFC: ",".join("1" if states.get(str(n)) == "on" else "0" for n in range(8)) if states else None,
    }
    return Qos(found, {int(dscp): priority for dscp, priority in rules.items()})


def parse_pause(text: str) -> str | None:
    """ethtool -a. Ports whose pause frames follow from negotiation say so in further lines."""
    rx, tx = (re.search(rf"^{name}:\s*(on|off)", text, re.MULTILINE) for name in ("RX", "TX"))
    return f"rx {rx[1]} tx {tx[1]}" if rx and tx else None


def parse_register(text: str) -> dict[str, int]:
    """mlxreg --get: ``roce_adp_retrans_en | 0x00000001``."""
    return {name: int(value, 16) for name, value in re.findall(r"^(\w+)\s*\|\s*(0x[0-9a-f]+)", text, re.MULTILINE)}


def number(text: str | None) -> str:
    """ "0x1", "106" and "Global tclass=106" -> text of the plain number."""
    found = re.search(r"(0x[0-9a-f]+|\d+)\s*$", (text or "").splitlines()[0] if text else "")
    return str(int(found[1], 0)) if found else NOT_SET


# --- pure decisions ------------------------------------------------------------------------------------------------


def wanted(settings: Settings, driver: str) -> dict[str, Value]:
    """Setting -> value, in the order in which they are set: what undoes others comes first."""
    lossless = settings["fabric"] == "lossless"
    priority, dscp, cnp = str(settings["priority"]), settings["dscp"], settings["cnp_dscp"]
    values: dict[str, Value] = {
        DCBX: "os",
        PAUSE: "rx off tx off",
        TRUST: "dscp",
        priority_of(dscp): priority,
        priority_of(cnp): str(settings["cnp_priority"]),
        PFC: ",".join("1" if lossless and n == settings["priority"] else "0" for n in range(8)),
        NP: "1",
        RP: "1",
        CNP_DSCP: str(cnp),
        CNP_PRIO: str(settings["cnp_priority"]),
        TOS: str(settings["tos"]),
        MTU: Between(settings["least_link_mtu"], settings["link_mtu"]),
    }
    if driver == "mlx5_core":
        values.update({TC: str(settings["tos"]), ACCEL: "off" if lossless else "on"})
    if settings.get("gbit_s"):
        values[SPEED] = str(settings["gbit_s"])
    return values


def priority_of(dscp: int | str) -> str:
    return f"priority of DSCP {dscp}"


def fits(value: Value, found: str) -> bool:
    if isinstance(value, Between):
        return found.isdigit() and value.low <= int(found) <= value.high
    return value == found


def decide(values: dict[str, Value], found: dict[str, str | None]) -> tuple[Differ, list[str]]:
    """(settings that differ: name -> (found, wanted); why others are left out)."""
    differ: Differ = {}
    notes: list[str] = []
    for name, value in values.items():
        seen = found.get(name)
        if seen is None and name in OPTIONAL:
            notes.append(f"{name} is left: {OPTIONAL[name]}")
        elif seen is None or not fits(value, seen):
            differ[name] = (seen or "nowhere to be read", str(value))
    return differ, notes


def smaller_mtu(link_mtu: int) -> int:
    """As Linux chooses it (iboe_get_mtu): 96 bytes are for headers."""
    return max([mtu for mtu in (256, 512, 1024, 2048, 4096) if mtu + 96 <= link_mtu], default=0)


def explained(name: str, found: str, value: str, settings: Settings) -> str:
    """One difference as a sentence."""
    if name == MTU and found.isdigit() and int(found) < settings["least_link_mtu"]:
        mtu, least = settings["mtu"], settings["least_link_mtu"]
        return (
            f"roce.mtu {mtu} needs link MTU {least} or more on every hop; the port has {found} "
            f"(RDMA would drop to {smaller_mtu(int(found))})"
        )
    return f"{name} is {found}, wanted {value}"


# --- ports ----------------------------------------------------------------------------------------------------------


class Port:
    """A rail's port on this host."""

    def __init__(self, edge: Edge, rail: str, device: dict[str, str]) -> None:
        self.edge, self.rail = edge, rail
        self.interface = _interface(edge, device)
        path = f"{NET}/{self.interface}"
        _refuse_what_is_no_port(edge, path, self.interface)
        self.pci = edge.target(f"{path}/device")
        self.driver = edge.target(f"{path}/device/driver")
        ids = [(edge.read(f"{path}/device/{part}") or "").removeprefix("0x") for part in ("vendor", "device")]
        self.card = f"{CARDS.get(':'.join(ids), 'the card')} ({':'.join(ids)})"
        self.rdma = self._rdma(path)
        self.port = self._port()
        layer = edge.read(f"{IB}/{self.rdma}/ports/{self.port}/link_layer")
        if layer != "Ethernet":
            raise Refused(f"{self.interface}: {self.rdma} port {self.port} is {layer}, not Ethernet; set its LINK_TYPE")

    def _rdma(self, path: str) -> str:
        if self.driver == "mlx4_core":
            raise Refused(f"{self.interface}: {self.card} can't trust DSCP. RoCE v2 needs {LISTED}")
        devices = self.edge.names(f"{path}/device/infiniband")
        if not devices and self.driver in DRIVERS:
            module = {"mlx5_core": "mlx5_ib", "bnxt_en": "bnxt_re"}[self.driver]
            raise Refused(f"{self.interface}: {self.card} shows no RDMA device; load its driver: modprobe {module}")
        if not devices or self.driver not in DRIVERS:
            lacks = "is not listed here" if devices else "has no RDMA"
            raise Refused(f"{self.interface}: {self.card} {lacks}. RoCE v2 needs {LISTED}")
        if "bond" in devices[0]:
            raise Refused(f"{self.interface}: {devices[0]} joins the ports of a bond; {_OUT_OF_THE_BOND}")
        return devices[0]

    def _port(self) -> str:
        """The port of the RDMA device whose addresses are those of the interface."""
        ports = self.edge.names(f"{IB}/{self.rdma}/ports")
        own = [n for n in ports if self.edge.read(f"{IB}/{self.rdma}/ports/{n}/gid_attrs/ndevs/0") == self.interface]
        return (own or ports or ["1"])[0]

    def __str__(self) -> str:
        return f"{self.interface} ({self.rdma}, {self.card})"


_OUT_OF_THE_BOND = "take it out of the bond, and give each port a range of its own"


def _interface(edge: Edge, device: dict[str, str]) -> str:
    if device.get("interface"):
        if not edge.names(f"{NET}/{device['interface']}"):
            raise Refused(f"{device['interface']}: this host has no such interface")
        return device["interface"]
    interfaces = edge.names(f"{PCI}/{device['pci']}/net")
    if not interfaces:
        known = "has no network interface" if edge.names(f"{PCI}/{device['pci']}") else "is not in this host"
        raise Refused(f"{device['pci']}: the device {known}")
    return interfaces[0]


def _refuse_what_is_no_port(edge: Edge, path: str, interface: str) -> None:
    if edge.names(f"{path}/bonding"):
        raise Refused(f"{interface}: it is a bond; name its ports, each a rail of its own")
    if edge.names(f"{path}/bonding_slave"):
        raise Refused(f"{interface}: it is in the bond {edge.target(f'{path}/master')}; {_OUT_OF_THE_BOND}")
    if not edge.target(f"{path}/device"):
        raise Refused(f"{interface}: it is no port of a card; name the port under it")
    if edge.target(f"{path}/device/physfn"):
        raise Refused(
            f"{interface}: it is a virtual function; its port's settings belong to {edge.target(f'{path}/device/physfn')}"
        )


# --- settings of a port: where each is read and written ------------------------------------------------------------


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
    """dcb of iproute2, for every driver that Linux has."""

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


def files_of(port: Port, settings: Settings) -> dict[str, list[str]]:
    """Setting -> the files that may hold it; the first that is there counts."""
    net, ib = f"{NET}/{port.interface}", f"{IB}/{port.rdma}"
    if port.driver == "bnxt_en":
        cc = f"{_bnxt(port)}/ports/{port.port}/cc"
        return {
            NP: [f"{cc}/ecn_marking"],
            RP: [f"{cc}/ecn_enable"],
            CNP_DSCP: [f"{cc}/cnp_dscp"],
            CNP_PRIO: [f"{cc}/cnp_prio"],
        }
    ecn, debug = f"{net}/ecn", f"/sys/kernel/debug/mlx5/{port.pci}/cc_params"
    return {
        NP: [f"{ecn}/roce_np/enable/{settings['priority']}"],
        RP: [f"{ecn}/roce_rp/enable/{settings['priority']}"],
        CNP_DSCP: [f"{ecn}/roce_np/cnp_dscp", f"{debug}/np_cnp_dscp"],
        CNP_PRIO: [f"{ecn}/roce_np/cnp_802p_prio", f"{debug}/np_cnp_prio"],
        TC: [f"{ib}/tc/{port.port}/traffic_class"],
    }


def _bnxt(port: Port) -> str:
    """Broadcom's own driver only; the one in Linux has none of it."""
    return f"/sys/kernel/config/bnxt_re/{port.rdma}"


def _rdma_cm(port: Port) -> str:
    return f"/sys/kernel/config/rdma_cm/{port.rdma}"


class Host:
    """All settings of one port."""

    def __init__(self, port: Port, settings: Settings) -> None:
        self.port, self.edge, self.settings = port, port.edge, settings
        if port.driver == "mlx5_core" and self.edge.has("mlnx_qos"):
            self.qos: MlnxQos | Dcb = MlnxQos(port)
        elif self.edge.has("dcb"):
            self.qos = Dcb(port)
        else:
            raise Refused(f"{port.interface}: neither dcb (package iproute2) nor mlnx_qos (mlnx-tools) is here")
        self.files = files_of(port, settings)
        self.register = next((tool for tool in ("mlxreg", "mstreg") if self.edge.has(tool)), "")

    def look(self) -> dict[str, str | None]:
        """Setting -> what the port has now. None where it has no such setting."""
        states, mapped = self.qos.look()
        found = dict(states)
        for key in ("dscp", "cnp_dscp"):
            found[priority_of(self.settings[key])] = mapped.get(self.settings[key], NOT_SET)
        code, said = self.edge.run("ethtool", "-a", self.port.interface)
        found[PAUSE] = None if code else parse_pause(said)
        for name in self.files:
            path = self._file(name)
            found[name] = number(self.edge.read(path)) if path else self._before_configfs()
        tos = self.edge.read(f"{_rdma_cm(self.port)}/ports/{self.port.port}/default_roce_tos")
        found[TOS] = number(tos)
        found[ACCEL] = self._acceleration()
        net = f"{NET}/{self.port.interface}"
        speed = self.edge.read(f"{net}/speed") or ""
        found[SPEED] = str(int(speed) // 1000) if speed.isdigit() else None
        found[MTU] = self.edge.read(f"{net}/mtu")
        return found

    def set(self, name: str, value: str) -> None:
        if name in (DCBX, TRUST, PFC) or name.startswith(priority_of("")):
            self.qos.set(name, value, self.settings)
        elif name == PAUSE:
            tell(self.edge, "ethtool", "-A", self.port.interface, "rx", "off", "tx", "off")
        elif name == TOS:
            if not self.edge.target(os.path.dirname(_rdma_cm(self.port))):
                raise Refused("load the module: modprobe rdma_cm")
            self.edge.make(_rdma_cm(self.port))
            self.edge.write(f"{_rdma_cm(self.port)}/ports/{self.port.port}/default_roce_tos", value)
        elif name == ACCEL:
            enabled = ",".join(f"{field}={int(value == 'on'):#x}" for field in _ACCEL)
            tell(self.edge, self.register, "-d", self.port.pci, "-y", "--reg_name", "ROCE_ACCL", "--set", enabled)
        elif name in self.files:
            self._set_file(name, value)

    def _file(self, name: str) -> str | None:
        return next((path for path in self.files[name] if self.edge.read(path) is not None), None)

    def _before_configfs(self) -> str | None:
        """Broadcom's files appear with a folder that is made when something is set."""
        return (
            NOT_SET if self.port.driver == "bnxt_en" and self.edge.target(os.path.dirname(_bnxt(self.port))) else None
        )

    def _set_file(self, name: str, value: str) -> None:
        if self.port.driver != "bnxt_en":
            self.edge.write(self._file(name) or self.files[name][0], value)
            return
        path = self.files[name][0]
        self.edge.make(_bnxt(self.port))
        self.edge.write(path, value)
        self.edge.write(f"{os.path.dirname(path)}/apply", "0x1")

    def _acceleration(self) -> str | None:
        if not self.register or self.port.driver != "mlx5_core":
            return None
        code, said = self.edge.run(self.register, "-d", self.port.pci, "--reg_name", "ROCE_ACCL", "--get")
        fields = {} if code else parse_register(said)
        if not fields.keys() >= set(_ACCEL):
            return None
        states = {fields[field] for field in _ACCEL}
        return "mixed" if len(states) > 1 else "on" if states == {1} else "off"


# What NVIDIA's doRoCE.sh turns off for lossless fabrics.
_ACCEL = ("roce_adp_retrans_en", "roce_tx_window_en", "roce_slow_restart_en")


# --- verbs ----------------------------------------------------------------------------------------------------------


class Result(NamedTuple):
    """What became of one rail's port. `wrong` is empty where it is as wanted in the end, or with --check would be.

    changed: what was changed, or with --check would be. notes: what is left, and why that does no harm.
    """

    rail: str
    port: str = ""
    changed: tuple[str, ...] = ()
    wrong: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def bring(edge: Edge, settings: Settings, rail: str, check: bool) -> Result:
    """Bring one rail's port to what is wanted, and read it back; with `check` only look."""
    try:
        host = Host(Port(edge, rail, settings["rails"][rail]), settings)
        values = wanted(settings, host.port.driver)
        differ, notes = decide(values, host.look())
        settable = {name: pair for name, pair in differ.items() if name not in LOOKED_AT}
        refusals = {} if check else set_all(host, settable)
        left = decide(values, host.look())[0] if refusals or (settable and not check) else differ
    except Refused as error:
        return Result(rail, wrong=(str(error),))
    failed = left if not check else {name: left[name] for name in left if name in LOOKED_AT}
    wrong = (
        f"{host.port.interface}: {explained(name, *pair, settings)}"
        + (f": {refusals[name]}" if name in refusals else "")
        for name, pair in failed.items()
    )
    changed = (f"{name}: {was} -> {value}" for name, (was, value) in settable.items() if name not in failed)
    return Result(rail, str(host.port), tuple(changed), tuple(wrong), tuple(notes))


def set_all(host: Host, differ: Differ) -> dict[str, str]:
    """Set all that differs; setting -> why it was refused. What counts in the end is what is read back."""
    refusals = {}
    for name, (_, value) in differ.items():
        try:
            host.set(name, value)
        except Refused as error:
            refusals[name] = str(error)
    return refusals


def facts(edge: Edge, settings: Settings, rail: str) -> dict[str, Any]:
    """What a test needs to know of one rail's port; Refused where it can't be used."""
    port = Port(edge, rail, settings["rails"][rail])
    net = f"{NET}/{port.interface}"
    speed = edge.read(f"{net}/speed") or ""
    return {
        "interface": port.interface,
        "rdma": port.rdma,
        "port": int(port.port),
        "gid_index": _gid_index(edge, port),
        "gbit_s": int(speed) // 1000 if speed.isdigit() else None,
        "mtu": smaller_mtu(int(edge.read(f"{net}/mtu") or 0)),
        "state": (edge.read(f"{IB}/{port.rdma}/ports/{port.port}/state") or "").rpartition(" ")[2],
    }


def _gid_index(edge: Edge, port: Port) -> int:
    """The address of the port that RoCE v2 packets over IPv4 come from."""
    base = f"{IB}/{port.rdma}/ports/{port.port}"
    for index in sorted(edge.names(f"{base}/gids"), key=int):
        kind, gid = edge.read(f"{base}/gid_attrs/types/{index}"), edge.read(f"{base}/gids/{index}") or ""
        own = edge.read(f"{base}/gid_attrs/ndevs/{index}") in (port.interface, None)
        if kind == "RoCE v2" and gid.startswith("0000:0000:0000:0000:0000:ffff:") and own:
            return int(index)
    raise Refused(f"{port.interface}: {port.rdma} has no RoCE v2 address over IPv4; give the port an address")


def link_state(edge: Edge, device: dict[str, str]) -> tuple[str | None, bool]:
    """(the interface and how often its link has changed, whether it is up): settings may be lost when the first does."""
    try:
        interface = _interface(edge, device)
    except Refused:
        return None, False
    path = f"{NET}/{interface}"
    now = f"{edge.read(f'{path}/ifindex')} {edge.read(f'{path}/carrier_changes')}"
    return now, edge.read(f"{path}/carrier") == "1"


def watch(edge: Edge, settings: Settings, rail: str, events: Iterable[None], ready: Callable[[], None]) -> int:
    """Apply, then again each time the port comes back. Ends with the first time that it can't."""
    device = settings["rails"][rail]
    before = link_state(edge, device)
    result = bring(edge, settings, rail, check=False)
    show(result)
    if result.wrong:
        return 1
    ready()
    for _ in events:
        now = link_state(edge, device)
        if now != before and now[1]:
            result = bring(edge, settings, rail, check=False)
            show(result)
            if result.wrong:
                return 1
        before = now
    return 0


def link_events() -> Iterator[None]:
    """One value for each burst of changes of the kernel's links (rtnetlink(7), group RTMGRP_LINK), from now on."""
    listener = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
    listener.bind((0, 1))

    def bursts() -> Iterator[None]:
        while True:
            _heard(listener, 0)
            time.sleep(1)
            while _heard(listener, socket.MSG_DONTWAIT):
                pass
            yield None

    return bursts()


def _heard(listener: socket.socket, flags: int) -> bool:
    """Whether there was a message. Messages may be lost when there are many (ENOBUFS), which tells as much as one."""
    try:
        listener.recv(65536, flags)
    except BlockingIOError:
        return False
    except OSError as error:
        return error.errno == errno.ENOBUFS
    return True


def tell_systemd(text: str) -> None:
    """sd_notify(3)."""
    path = os.environ.get("NOTIFY_SOCKET", "")
    if path:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as out:
            out.sendto(text.encode(), "\0" + path[1:] if path.startswith("@") else path)


def show(result: Result) -> None:
    host = os.uname().nodename
    for line in result.wrong:
        print(f"{host}/{line}", file=sys.stderr)
    for line in (*result.changed, *result.notes):
        print(f"{result.rail}: {line}")
    sys.stdout.flush()


def main(arguments: list[str], edge: Edge) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verb", choices=["apply", "facts", "watch"])
    parser.add_argument("rails", nargs="*", metavar="RAIL")
    parser.add_argument("--check", action="store_true", help="change nothing; exit 2 where something would change")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args(arguments)
    text = edge.read(SETTINGS)
    if text is None:
        print(f"{SETTINGS} can't be read; run: menagerie up CLUSTER --tags roce", file=sys.stderr)
        return 1
    settings = json.loads(text)
    unknown = set(given.rails) - set(settings["rails"])
    if unknown:
        print(f"no rail {', '.join(sorted(unknown))}; there are: {', '.join(settings['rails'])}", file=sys.stderr)
        return 1
    rails = given.rails or list(settings["rails"])
    if given.verb == "watch":
        return watch(
            edge, settings, rails[0], link_events(), lambda: tell_systemd(f"READY=1\nSTATUS={rails[0]} is set")
        )
    if given.verb == "facts":
        return _facts(edge, settings, rails)
    results = [bring(edge, settings, rail, given.check) for rail in rails]
    for result in () if given.json else results:
        show(result)
    if given.json:
        print(json.dumps({"host": os.uname().nodename, "rails": [result._asdict() for result in results]}))
    if any(result.wrong for result in results):
        return 1
    return 2 if given.check and any(result.changed for result in results) else 0


def _facts(edge: Edge, settings: Settings, rails: list[str]) -> int:
    told = {}
    for rail in rails:
        try:
            told[rail] = facts(edge, settings, rail)
        except Refused as error:
            told[rail] = {"refused": str(error)}
    print(json.dumps(told))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], Edge()))
