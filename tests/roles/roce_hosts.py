"""Fake hosts with RDMA cards for `menagerie-roce`: a tree of sysfs files, and the tools of `roce_cards`."""

from __future__ import annotations

import os
from pathlib import Path

from menagerie_roce import edge

from cluster.roce import Device, Roce
from network.roce.host import settings
from tests.roles.roce_cards import Card, Tools

INTERFACE, PCI = "ens1f0np0", "0000:1a:00.0"


def host_settings(**changes: object) -> dict[str, object]:
    """Return the settings of a fabric's host, from the same model as the switches' configuration."""
    device = changes.pop("device", Device(interface=INTERFACE))
    return settings(Roce.model_validate({"rails": {"gpu": {"rail-0": device}}, **changes}), "gpu")


def build(root: Path, card: Card, interface: str = INTERFACE) -> Host:
    """Return a host with one port of a card."""
    host = Host(root, card, interface)
    host.make_tree()
    return host


class Host(Tools):
    def __init__(self, root: Path, card: Card, interface: str) -> None:
        super().__init__(card, interface)
        self.root = root
        self.edge = _edge(self)

    # --- the tree -----------------------------------------------------------------------------------------------

    def put(self, path: str, text: str | int) -> None:
        target = self.root / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(f"{text}\n" if text != "" else "")

    def link(self, path: str, target: str) -> None:
        source = self.root / path.lstrip("/")
        source.parent.mkdir(parents=True, exist_ok=True)
        source.symlink_to(os.path.relpath(self.root / target.lstrip("/"), source.parent))

    def make_tree(self) -> None:
        card, net = self.card, f"/sys/class/net/{self.interface}"
        device = f"/sys/devices/pci0000:17/{PCI}"
        self.put(f"{device}/vendor", card.vendor)
        self.put(f"{device}/device", card.device)
        (self.root / f"sys/bus/pci/drivers/{card.driver}").mkdir(parents=True, exist_ok=True)
        self.link(f"{device}/driver", f"/sys/bus/pci/drivers/{card.driver}")
        self.put(f"{device}/net/{self.interface}/ifindex", 4)
        self.link(f"/sys/bus/pci/devices/{PCI}", device)
        self.link(f"{net}/device", device)
        self.put(f"{net}/mtu", card.mtu)
        self.put(f"{net}/ifindex", 4)
        self.put(f"{net}/carrier", int(card.up))
        self.put(f"{net}/carrier_changes", 2)
        if card.up:
            self.put(f"{net}/speed", card.gbit_s * 1000)
        (self.root / "sys/kernel/config").mkdir(parents=True)
        if card.has_rdma_cm:
            (self.root / "sys/kernel/config/rdma_cm").mkdir()
        if card.rdma:
            self._make_rdma(card, device, net)

    def _make_rdma(self, card: Card, device: str, net: str) -> None:
        (self.root / f"{device}/infiniband/{card.rdma}".lstrip("/")).mkdir(parents=True)
        port = f"/sys/class/infiniband/{card.rdma}/ports/1"
        self.put(f"{port}/link_layer", card.link_layer)
        self.put(f"{port}/state", "4: ACTIVE" if card.up else "1: DOWN")
        gids = [
            ("fe80:0000:0000:0000:0ac0:ebff:fe21:03da", "IB/RoCE v1"),
            ("fe80:0000:0000:0000:0ac0:ebff:fe21:03da", "RoCE v2"),
            ("0000:0000:0000:0000:0000:ffff:0a63:0111", "IB/RoCE v1"),
            ("0000:0000:0000:0000:0000:ffff:0a63:0111", "RoCE v2"),
        ]
        for index, (gid, kind) in enumerate(gids):
            self.put(f"{port}/gids/{index}", gid)
            self.put(f"{port}/gid_attrs/types/{index}", kind)
            self.put(f"{port}/gid_attrs/ndevs/{index}", self.interface)
        if card.driver == "mlx5_core":
            if card.has_ecn:
                for side in ("np", "rp"):
                    for priority in range(8):
                        self.put(f"{net}/ecn/roce_{side}/enable/{priority}", 0)
                self.put(f"{net}/ecn/roce_np/cnp_dscp", 48)
                self.put(f"{net}/ecn/roce_np/cnp_802p_prio", 0)
            if card.has_debugfs:
                self.put(f"/sys/kernel/debug/mlx5/{PCI}/cc_params/np_cnp_dscp", 40)
                self.put(f"/sys/kernel/debug/mlx5/{PCI}/cc_params/np_cnp_prio", 0)
            if card.has_tc:
                self.put(f"/sys/class/infiniband/{card.rdma}/tc/1/traffic_class", "")
        if card.has_bnxt_configfs:
            (self.root / "sys/kernel/config/bnxt_re").mkdir()

    def files(self) -> dict[str, str]:
        """Return every file of the tree: path -> text."""
        return {str(p.relative_to(self.root)): p.read_text() for p in sorted(self.root.rglob("*")) if p.is_file()}

    def text(self, path: str) -> str:
        return (self.root / path.lstrip("/")).read_text().strip()


def _edge(host: Host) -> object:
    """Return the program's edge on the tree. Writes behave as in the kernel."""

    class Edge(edge.Edge):
        def has(self, command: str) -> bool:
            return command in host.card.tools

        def run(self, *words: str) -> tuple[int, str]:
            return host.run(words)

        def make(self, path: str) -> None:
            super().make(path)
            files = {"bnxt_re": ("cc/ecn_marking", "cc/ecn_enable", "cc/cnp_dscp", "cc/cnp_prio", "cc/apply")}
            for name in files.get(path.split("/")[4], ("default_roce_tos", "default_roce_mode")):
                if not (host.root / f"{path}/ports/1/{name}".lstrip("/")).exists():
                    host.put(f"{path}/ports/1/{name}", "0x0" if "cc" in name else 0)

        def write(self, path: str, text: str) -> None:
            host.calls.append(("write", path, text))
            if path.endswith("/traffic_class"):
                text = f"Global tclass={text}\n"
            elif "/cc/" in path:
                text = f"{int(text, 0):#x}\n"
            super().write(path, text)

    return Edge(str(host.root))
