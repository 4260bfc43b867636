"""Fake hosts with cards for `menagerie-links`: a tree of sysfs files, and tools that answer.

lldp/recorded.json was recorded from lldpd 1.0.16, which heard three other lldpd that were configured to announce like
switches: Cumulus Linux (the port's name), SONiC (a local name, and the front panel's as description) and Arista EOS (a
description written by the operator). We recorded no cards, because none were available. Formats and texts come from:

- ethtool -g, -k, -P: ethtool(8) 6.1; the role's tests use its real answers for a veth
- largest rings, and their rounding: Linux, drivers/net/ethernet/{mellanox/mlx5/core/en_ethtool.c,
  intel/ice/ice_ethtool.c, broadcom/bnxt/bnxt.h}
- MTUs: the same drivers, max_mtu
- representors (phys_port_name): Linux, Documentation/networking/switchdev.rst
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from menagerie_links import edge

MLX = {"pci": "0000:1a:00.0", "mtu": 9000}
RECORDED = json.loads((Path(__file__).parent / "lldp" / "recorded.json").read_text())


@dataclass
class Card:
    """A port, its driver, and its settings. features: name -> [on, fixed]."""

    driver: str
    pci: str
    mac: str
    largest: dict[str, int | None]
    rings: dict[str, int | None]
    features: dict[str, list[bool]]
    max_mtu: int
    round_ring: Callable[[int], int] = lambda size: size
    mtu: int = 1500
    carrier: int = 1
    name: str = "eth0"
    has_rings: bool = True
    ignores: set[str] = field(default_factory=set)


def _features(**fixed: bool) -> dict[str, list[bool]]:
    """Return the features of most drivers, plus given ones, all off: name=False can be set, name=True is fixed."""
    usual = {"rx-checksumming": True, "tx-checksumming": True, "tcp-segmentation-offload": True}
    usual |= {"generic-receive-offload": True, "rx-vlan-offload": True, "receive-hashing": True}
    own = {name.replace("_", "-"): [False, is_fixed] for name, is_fixed in fixed.items()}
    return {name: [on, False] for name, on in usual.items()} | own


def connectx(**changes: Any) -> Card:
    features = _features(large_receive_offload=False, hw_tc_offload=False, rx_gro_hw=False, rx_udp_gro_forwarding=False)
    rings = {"RX": 1024, "RX Mini": None, "RX Jumbo": None, "TX": 1024}
    largest = {"RX": 8192, "RX Mini": None, "RX Jumbo": None, "TX": 8192}
    options = {"round_ring": lambda size: 1 << (size - 1).bit_length(), "name": "ens1f0np0", **changes}
    return Card("mlx5_core", "0000:1a:00.0", "b8:59:9f:aa:bb:01", largest, rings, features, 9978, **options)


def e810(**changes: Any) -> Card:
    features = _features(large_receive_offload=True, hw_tc_offload=False, rx_gro_hw=True)
    rings = {"RX": 2048, "RX Mini": None, "RX Jumbo": None, "TX": 256}
    largest = {"RX": 8160, "RX Mini": None, "RX Jumbo": None, "TX": 8160}
    options = {"round_ring": lambda size: -(-size // 32) * 32, "name": "ens2f0", **changes}
    return Card("ice", "0000:3b:00.0", "b4:96:91:aa:bb:02", largest, rings, features, 9702, **options)


def thor(**changes: Any) -> Card:
    features = _features(large_receive_offload=False, hw_tc_offload=True, rx_gro_hw=False)
    rings = {"RX": 511, "RX Mini": None, "RX Jumbo": 2044, "TX": 511}
    largest = {"RX": 2047, "RX Mini": None, "RX Jumbo": 8191, "TX": 2047}
    options = {"name": "ens3f0np0", **changes}
    return Card("bnxt_en", "0000:5e:00.0", "bc:97:e1:aa:bb:03", largest, rings, features, 9500, **options)


CARDS = {"ConnectX-6 Dx": connectx, "Intel E810": e810, "Broadcom Thor": thor}
_SHORT = {"rx": "rx-checksumming", "tx": "tx-checksumming", "tso": "tcp-segmentation-offload"}
_SHORT |= {"gro": "generic-receive-offload", "lro": "large-receive-offload", "rxvlan": "rx-vlan-offload"}


class Host:
    """A host with cards. addresses: interface -> its IPv4 address. lldp: output of lldpctl."""

    def __init__(self, root: Path, *cards: Card, lldp: Any = None, **addresses: str) -> None:
        self.root, self.cards, self.lldp = root, {card.name: card for card in cards}, lldp or {"lldp": [{}]}
        self.addresses = addresses
        self.calls: list[tuple[str, ...]] = []
        self.put("/sys/class/net/lo/mtu", 65536)
        for number, card in enumerate(cards, 2):
            self._make(card, number)
        self.edge = _edge(self)

    def put(self, path: str, text: str | int) -> None:
        target = self.root / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(f"{text}\n")

    def _make(self, card: Card, number: int) -> None:
        device, net = f"sys/devices/pci0000:17/{card.pci}", f"sys/class/net/{card.name}"
        self.put(f"{device}/net/{card.name}/ifindex", number)
        for name, target in (("bus/pci/drivers", device), ("bus/pci/devices", "")):
            (self.root / "sys" / name).mkdir(parents=True, exist_ok=True)
        driver = self.root / "sys/bus/pci/drivers" / card.driver
        driver.mkdir(exist_ok=True)
        (self.root / device / "driver").symlink_to(driver)
        (self.root / "sys/bus/pci/devices" / card.pci).symlink_to(self.root / device)
        files = {"ifindex": number, "mtu": card.mtu, "address": card.mac, "carrier": card.carrier, "carrier_changes": 2}
        for name, value in files.items():
            self.put(f"{net}/{name}", value)
        (self.root / net / "device").symlink_to(self.root / device)

    # --- the tools ----------------------------------------------------------------------------------------------

    def run(self, words: tuple[str, ...]) -> tuple[int, str]:
        self.calls.append(words)
        if words[0] == "lldpctl":
            return 0, json.dumps(self.lldp)
        if words[0] == "ip":
            return self._ip(words[1:])
        card = self.cards.get(words[2])
        if card is None:
            return 75, "netlink error: No such device\n"
        return {"-g": self._rings, "-G": self._set_rings, "-k": self._shown, "-K": self._set_features}.get(
            words[1], lambda card, _: (0, f"Permanent address: {card.mac}\n")
        )(card, words[3:])

    def _ip(self, words: tuple[str, ...]) -> tuple[int, str]:
        if words[:3] == ("link", "set", "dev"):
            card = self.cards[words[3]]
            if "mtu" not in card.ignores:
                card.mtu = int(words[5])
                self.put(f"/sys/class/net/{card.name}/mtu", card.mtu)
            return 0, ""
        if "link" in words:
            return 0, json.dumps([{"ifname": words[-1], "min_mtu": 68, "max_mtu": self.cards[words[-1]].max_mtu}])
        if "address" in words:
            entries: list[dict[str, Any]] = [{"ifname": "lo", "addr_info": [{"local": "127.0.0.1"}]}, {}]
            entries += [{"ifname": name, "addr_info": [{"local": address}]} for name, address in self.addresses.items()]
            return 0, json.dumps(entries)
        return 0, "[]"

    def _rings(self, card: Card, _: tuple[str, ...]) -> tuple[int, str]:
        if not card.has_rings:
            return 81, "netlink error: Operation not supported\n"
        lines = [f"Ring parameters for {card.name}:", "Pre-set maximums:"]
        for title, sizes in (("", card.largest), ("Current hardware settings:", card.rings)):
            lines += [title] if title else []
            lines += [f"{name}:\t\t{'n/a' if size is None else size}" for name, size in sizes.items()]
        return 0, "\n".join([*lines, "RX Buf Len:\t\tn/a", "CQE Size:\t\tn/a", "TX Push:\toff"]) + "\n"

    def _set_rings(self, card: Card, words: tuple[str, ...]) -> tuple[int, str]:
        for name, size in zip(words[::2], words[1::2], strict=True):
            card.rings[name.upper()] = card.round_ring(int(size))
        return 0, ""

    def _shown(self, card: Card, _: tuple[str, ...]) -> tuple[int, str]:
        lines = [f"Features for {card.name}:"]
        for name, (on, fixed) in card.features.items():
            lines.append(f"{name}: {'on' if on else 'off'}{' [fixed]' if fixed else ''}")
            if name == "tcp-segmentation-offload":
                lines += ["\ttx-tcp-segmentation: on", "\ttx-tcp-ecn-segmentation: off [fixed]"]
        return 0, "\n".join(lines) + "\n"

    def _set_features(self, card: Card, words: tuple[str, ...]) -> tuple[int, str]:
        for name, state in zip(words[::2], words[1::2], strict=True):
            feature = card.features.get(_SHORT.get(name, name))
            if feature is None:
                return 92, "netlink error: bit name not found (offset 56)\n"
            if feature[1] or name in card.ignores:
                return 1, f"Actual changes:\n{name}: off [requested on]\nCould not change any device features\n"
            feature[0] = state == "on"
        return 0, ""


def _edge(host: Host) -> Any:
    class Edge(edge.Edge):
        def run(self, *words: str) -> tuple[int, str]:
            return host.run(tuple(word for word in words if word != "-json"))

    return Edge(str(host.root))


def is_mutation(call: tuple[str, ...]) -> bool:
    return call[1] in ("-G", "-K") or "set" in call
