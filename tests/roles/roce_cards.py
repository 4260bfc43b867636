"""Fake RDMA cards, and the tools that set them, for `menagerie-roce`. Standard library only: hosts of the lab run this.

We recorded none of this, because no such card was available. Formats and texts come from:

- mlnx_qos: its source (mlnx-tools, python/mlnx_qos), and outputs of ConnectX-4, -5 and -7 in "RoCEv2" guides
- dcb: dcb-app(8), dcb-pfc(8) and dcb-dcbx(8) of iproute2
- ethtool -a: ethtool(8); a driver without pause frames answers "Operation not supported"
- /sys/class/net/*/ecn and /sys/class/infiniband/*/tc: MLNX_OFED's driver only ("Explicit Congestion Notification", "Quality
  of Service" in its user manual); traffic_class is empty until it is set, and then starts with "Global tclass="
- /sys/kernel/debug/mlx5/*/cc_params: Linux, drivers/infiniband/hw/mlx5/cong.c
- /sys/kernel/config/rdma_cm: Linux, Documentation/ABI/testing/configfs-rdma_cm
- /sys/kernel/config/bnxt_re: Broadcom's own driver (its bnxt_setupcc.sh)
- mlxreg: "mlxreg Utility" (NVIDIA firmware tools), and "How to Enable/Disable Lossy RoCE Accelerations"
- PCI numbers: pci.ids
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace


@dataclass(frozen=True)
class Card:
    """A card, its driver, and their missing features and quirks."""

    vendor: str
    device: str
    driver: str
    rdma: str = "mlx5_0"
    gbit_s: int = 100
    tools: tuple[str, ...] = ("mlnx_qos", "dcb", "mlxreg")
    has_ecn: bool = True
    has_tc: bool = True
    has_debugfs: bool = True
    has_accel: bool = True
    has_bnxt_configfs: bool = False
    has_rdma_cm: bool = True
    has_pause: bool = True
    can_trust: bool = True
    ignores_pfc: bool = False
    keeps_dcbx: bool = False
    warns_of_lldpad: bool = False
    prints_dcbx: bool = True
    link_layer: str = "Ethernet"
    mtu: int = 9000
    up: bool = True


CX4_LX = Card("0x15b3", "0x1015", "mlx5_core", gbit_s=25, has_accel=False, prints_dcbx=False)
CX5 = Card("0x15b3", "0x1017", "mlx5_core")
CX6_DX_IN_LINUX = Card("0x15b3", "0x101d", "mlx5_core", tools=("dcb",), has_ecn=False, has_tc=False)
CX7 = Card("0x15b3", "0x1021", "mlx5_core", gbit_s=400, warns_of_lldpad=True)
THOR = Card("0x14e4", "0x1750", "bnxt_en", rdma="bnxt_re0", gbit_s=200, tools=("dcb",), has_bnxt_configfs=True)
THOR_IN_LINUX = replace(THOR, has_bnxt_configfs=False)
CARDS = {
    "ConnectX-4 Lx": CX4_LX, "ConnectX-5": CX5, "ConnectX-6 Dx with Linux' own driver": CX6_DX_IN_LINUX,
    "ConnectX-7": CX7, "Broadcom Thor": THOR, "Broadcom Thor with Linux' own driver": THOR_IN_LINUX,
}  # fmt: skip
X710 = Card("0x8086", "0x1572", "i40e", rdma="")
E810 = Card("0x8086", "0x1592", "ice", rdma="irdma0", tools=("dcb",))
CX3 = Card("0x15b3", "0x1003", "mlx4_core", rdma="mlx4_0")


@dataclass
class Qos:
    """A card's settings by priority, with factory defaults."""

    dcbx: str = "Firmware"
    trust: str = "pcp"
    pfc: list[int] = field(default_factory=lambda: [0] * 8)
    mapped: dict[int, int] = field(default_factory=dict)
    pause: tuple[str, str] = ("on", "on")
    accel: int = 1


class Tools:
    """A card's tools, which set `qos`."""

    def __init__(self, card: Card, interface: str) -> None:
        self.card, self.interface = card, interface
        self.qos = Qos()
        self.calls: list[tuple[str, ...]] = []

    def run(self, words: tuple[str, ...]) -> tuple[int, str]:
        self.calls.append(words)
        tool = {"mlnx_qos": self._mlnx_qos, "dcb": self._dcb, "ethtool": self._ethtool, "mlxreg": self._mlxreg}[
            words[0]
        ]
        return tool(words)

    def _mlnx_qos(self, words: tuple[str, ...]) -> tuple[int, str]:
        qos, (option, value) = self.qos, (*words[3:], "", "")[:2]
        if option == "--dcbx" and not self.card.keeps_dcbx:
            qos.dcbx = "OS"
        if option == "--trust":
            if not self.card.can_trust:
                return 1, "Priority trust state is not supported on your system\n"
            qos.trust = value
            qos.mapped = {dscp: dscp >> 3 for dscp in range(64)}
        if option == "--pfc" and not self.card.ignores_pfc:
            qos.pfc = [int(flag) for flag in value.split(",")]
        if option == "--dscp2prio":
            _, dscp, priority = value.split(",")
            if qos.mapped.get(int(dscp)) == int(priority):
                return 1, "dscp2prio command failed\n"
            qos.mapped[int(dscp)] = int(priority)
        return 0, self._mlnx_qos_text()

    def _mlnx_qos_text(self) -> str:
        qos, trust = self.qos, self.qos.trust if self.card.can_trust else "none"
        lines = []
        if self.card.warns_of_lldpad:
            lines.append("****** WARNING: lldpad service is running and may overwrite your settings ******\n")
        if not self.card.can_trust:
            lines.append("Priority trust state is not supported on your system")
        if self.card.prints_dcbx:
            lines.append(f"DCBX mode: {qos.dcbx} controlled")
        lines.append(f"Priority trust state: {trust}")
        if trust == "dscp":
            lines.append("dscp2prio mapping:")
            for priority in range(8):
                dscps = [f"{dscp:02}," for dscp in sorted(qos.mapped, reverse=True) if qos.mapped[dscp] == priority]
                lines += [f"\tprio:{priority} dscp:{''.join(dscps[at : at + 8])}" for at in range(0, len(dscps), 8)]
        lines += ["default priority:", "Receive buffer size (bytes): 130944,130944,0,0,0,0,0,0,max_buffer_size=262016"]
        lines += ["Cable len: 7", "PFC configuration:", "\tpriority    0   1   2   3   4   5   6   7"]
        lines += [
            f"\tenabled     {''.join(f'{on}   ' for on in qos.pfc)}",
            "\tbuffer      0   0   0   1   0   0   0   0   ",
        ]
        for tc in range(8):
            lines += [f"tc: {tc} ratelimit: unlimited, tsa: vendor", f"\t priority:  {tc}"]
        return "\n".join(lines) + "\n"

    def _dcb(self, words: tuple[str, ...]) -> tuple[int, str]:
        qos, (what, verb), rest = self.qos, words[2:4], words[6:]
        if (what, verb) == ("app", "replace"):
            qos.mapped |= {int(dscp): int(priority) for dscp, priority in (pair.split(":") for pair in rest[1:])}
        elif (what, verb) == ("pfc", "set"):
            for which, state in (pair.split(":") for pair in rest[1:]):
                for priority in range(8) if which == "all" else [int(which)]:
                    qos.pfc[priority] = int(state == "on" and not self.card.ignores_pfc)
        elif (what, verb) == ("dcbx", "set"):
            qos.dcbx = "OS"
        if verb != "show":
            return 0, ""
        rules = " ".join(f"{dscp}:{priority}" for dscp, priority in sorted(qos.mapped.items()))
        states = " ".join(f"{n}:{'on' if on else 'off'}" for n, on in enumerate(qos.pfc))
        return 0, {
            "app": f"dscp-prio {rules}\n" if rules else "",
            "pfc": f"pfc-cap 8 macsec-bypass off delay 4096\nprio-pfc {states}\n",
            "dcbx": f"dcbx {'host' if qos.dcbx == 'OS' else 'lld-managed'} ieee\n",
        }[what]

    def _ethtool(self, words: tuple[str, ...]) -> tuple[int, str]:
        if not self.card.has_pause:
            return 76, "netlink error: Operation not supported\n"
        if words[1] == "-A":
            self.qos.pause = ("off", "off")
            return 0, ""
        rx, tx = self.qos.pause
        return (
            0,
            f"Pause parameters for {self.interface}:\nAutonegotiate:\toff\nRX:\t\t{rx}\nTX:\t\t{tx}\nRX negotiated: on\n",
        )

    def _mlxreg(self, words: tuple[str, ...]) -> tuple[int, str]:
        if not self.card.has_accel:
            return 1, "-E- Failed to send access register: ME_REG_ACCESS_BAD_PARAM\n"
        if "--set" in words:
            self.qos.accel = int(words[-1].rpartition("=")[2], 16)
        fields = ("roce_adp_retrans", "roce_tx_window", "roce_slow_restart")
        rows = [f"{name}_field_select{'':14}| 0x00000001" for name in fields]
        rows += [f"{name}_en{'':20}| 0x{self.qos.accel:08x}" for name in fields]
        line = "=" * 52
        head = "Sending access register...\n\nField Name                             | Data\n"
        return 0, "\n".join([f"{head}{line}", *rows, line]) + "\n"
