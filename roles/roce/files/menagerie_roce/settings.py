"""Read and write each setting of a port."""

from __future__ import annotations

import os
import re

from .desired import (
    ACCEL,
    CNP_DSCP,
    CNP_PRIO,
    DCBX,
    MTU,
    NOT_SET,
    NP,
    PAUSE,
    PFC,
    RP,
    SPEED,
    TC,
    TOS,
    TRUST,
    Settings,
    priority_of,
)
from .edge import IB, NET, Refused, tell
from .ports import Port
from .qos import Dcb, MlnxQos

# Fields that NVIDIA's doRoCE.sh turns off for lossless fabrics.
_ACCEL = ("roce_adp_retrans_en", "roce_tx_window_en", "roce_slow_restart_en")


def parse_pause(text: str) -> str | None:
    """Parse ethtool -a. Ports that negotiate pause frames report that in further lines."""
    rx, tx = (re.search(rf"^{name}:\s*(on|off)", text, re.MULTILINE) for name in ("RX", "TX"))
    return f"rx {rx[1]} tx {tx[1]}" if rx and tx else None


def parse_register(text: str) -> dict[str, int]:
    """Parse mlxreg --get: ``roce_adp_retrans_en | 0x00000001``."""
    return {name: int(value, 16) for name, value in re.findall(r"^(\w+)\s*\|\s*(0x[0-9a-f]+)", text, re.MULTILINE)}


def number(text: str | None) -> str:
    """Return the decimal number in "0x1", "106" or "Global tclass=106", as text."""
    match = re.search(r"(0x[0-9a-f]+|\d+)\s*$", (text or "").splitlines()[0] if text else "")
    return str(int(match[1], 0)) if match else NOT_SET


def files_of(port: Port, settings: Settings) -> dict[str, list[str]]:
    """Return setting -> the files that may hold it; the first that exists counts."""
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
    """Return the configfs folder of Broadcom's own driver; the driver in Linux has none."""
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
        """Return setting -> the port's value; None if it has no such setting."""
        states, mapped = self.qos.look()
        values = dict(states)
        for key in ("dscp", "cnp_dscp"):
            values[priority_of(self.settings[key])] = mapped.get(self.settings[key], NOT_SET)
        code, said = self.edge.run("ethtool", "-a", self.port.interface)
        values[PAUSE] = None if code else parse_pause(said)
        for name in self.files:
            path = self._file(name)
            values[name] = number(self.edge.read(path)) if path else self._before_configfs()
        tos = self.edge.read(f"{_rdma_cm(self.port)}/ports/{self.port.port}/default_roce_tos")
        values[TOS] = number(tos)
        values[ACCEL] = self._acceleration()
        net = f"{NET}/{self.port.interface}"
        speed = self.edge.read(f"{net}/speed") or ""
        values[SPEED] = str(int(speed) // 1000) if speed.isdigit() else None
        values[MTU] = self.edge.read(f"{net}/mtu")
        return values

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
        """Return NOT_SET where Broadcom's files will exist: `set` creates their folder."""
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
