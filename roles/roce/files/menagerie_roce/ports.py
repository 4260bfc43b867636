"""Find the port and card of a rail, or say why it can't be used."""

from __future__ import annotations

from .edge import IB, NET, PCI, Edge, Refused

DRIVERS = ("mlx5_core", "bnxt_en")
LISTED = "ConnectX-4 or newer, or another listed NIC"
# From pci.ids. Some cards are listed only for their name; their driver shows that they can't be used.
CARDS = {
    "15b3:1003": "ConnectX-3", "15b3:1007": "ConnectX-3 Pro", "15b3:1013": "ConnectX-4", "15b3:1015": "ConnectX-4 Lx",
    "15b3:1017": "ConnectX-5", "15b3:1019": "ConnectX-5 Ex", "15b3:101b": "ConnectX-6", "15b3:101d": "ConnectX-6 Dx",
    "15b3:101f": "ConnectX-6 Lx", "15b3:1021": "ConnectX-7", "15b3:1023": "ConnectX-8", "15b3:a2d6": "BlueField-2",
    "15b3:a2dc": "BlueField-3", "14e4:1750": "Broadcom BCM57508 (Thor)", "14e4:1760": "Broadcom BCM57608 (Thor 2)",
    "8086:1572": "Intel X710", "8086:1583": "Intel XL710", "8086:1592": "Intel E810-C", "8086:1593": "Intel E810-C",
}  # fmt: skip


class Port:
    """A rail's port on this host."""

    def __init__(self, edge: Edge, rail: str, device: dict[str, str]) -> None:
        self.edge, self.rail = edge, rail
        self.interface = interface_of(edge, device)
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
        """Return the RDMA device's port that has the interface's addresses."""
        ports = self.edge.names(f"{IB}/{self.rdma}/ports")
        own = [n for n in ports if self.edge.read(f"{IB}/{self.rdma}/ports/{n}/gid_attrs/ndevs/0") == self.interface]
        return (own or ports or ["1"])[0]

    def __str__(self) -> str:
        return f"{self.interface} ({self.rdma}, {self.card})"


_OUT_OF_THE_BOND = "take it out of the bond, and give each port a range of its own"


def interface_of(edge: Edge, device: dict[str, str]) -> str:
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
