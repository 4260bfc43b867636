"""What a machine's BMC is asked: who the machine is, its power, and what it boots from next."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from operations.provisioning.machines import normal_mac
from operations.provisioning.redfish import ROOT, BmcError, Document, Kind, Redfish

_MAC_DIGITS = 12


class Boot(StrEnum):
    """What a machine may boot from once (ComputerSystem.Boot.BootSourceOverrideTarget)."""

    NETWORK = "Pxe"
    MEDIA = "Cd"
    DISK = "Hdd"


@dataclass(frozen=True)
class Told:
    """What a BMC tells of its machine. macs: none where the machine's cards are unknown to it, as before a first start."""

    model: str
    serial: str
    power: str
    macs: tuple[str, ...]


class Bmc:
    """One machine, by a BMC that is logged in at. mac: which one, where a BMC serves several."""

    def __init__(self, redfish: Redfish, mac: str) -> None:
        self._redfish = redfish
        self._mac = mac
        self._path = self._find()

    def told(self) -> Told:
        """Who the machine is."""
        system = self._system()
        model = " ".join(str(system[key]) for key in ("Manufacturer", "Model") if system.get(key))
        power = str(system.get("PowerState", "unknown"))
        return Told(model, str(system.get("SerialNumber") or ""), power, self._macs(system))

    @property
    def is_on(self) -> bool | None:
        """None while it changes: PoweringOn, PoweringOff."""
        return {"On": True, "Off": False}.get(str(self._system().get("PowerState")))

    def turn(self, *, on: bool) -> None:
        """Turn it on or, without asking what runs there, off. It takes some seconds."""
        action = self._system().get("Actions", {}).get("#ComputerSystem.Reset", {})
        wanted = ("On", "ForceOn") if on else ("ForceOff",)
        allowed = action.get("ResetType@Redfish.AllowableValues", wanted)
        chosen = next((kind for kind in wanted if kind in allowed), None)
        if chosen is None or "target" not in action:
            raise self._lacks(f"the action Reset with {' or '.join(wanted)}")
        self._redfish.post(action["target"], {"ResetType": chosen})

    def boot_once(self, target: Boot) -> None:
        """Boot from it the next time, in the mode (UEFI or Legacy) that the machine is in.

        Some BMCs go to Legacy where the mode isn't said with the target, and some take what they don't do: so it is
        read back.
        """
        boot = self._system().get("Boot", {})
        if target not in boot.get("BootSourceOverrideTarget@Redfish.AllowableValues", [target]):
            raise self._lacks(f"booting from {target}")
        wanted = {"BootSourceOverrideEnabled": "Once", "BootSourceOverrideTarget": str(target)}
        if mode := boot.get("BootSourceOverrideMode"):
            wanted["BootSourceOverrideMode"] = mode
        self._redfish.patch(self._path, {"Boot": wanted})
        if self._system().get("Boot", {}).get("BootSourceOverrideTarget") != target:
            raise BmcError(Kind.FAULT, f"{self._redfish} was told to boot from {target} and has not kept it")

    def boot_from_disk(self) -> None:
        """Take an override back that is still there: some BMCs keep what was said for once."""
        boot = self._system().get("Boot", {})
        overridden = boot.get("BootSourceOverrideTarget") in (Boot.NETWORK, Boot.MEDIA)
        if overridden and boot.get("BootSourceOverrideEnabled") != "Disabled":
            self.boot_once(Boot.DISK)

    def insert(self, image: str) -> None:
        """Attach an image as a CD. Another that is attached is taken out first."""
        drive = self._drive()
        if drive.get("Inserted"):
            if drive.get("Image") == image:
                return
            self.eject()
        target = self._media_action(drive, "InsertMedia")
        self._redfish.post(target, {"Image": image, "Inserted": True, "WriteProtected": True})
        if not self._redfish.get(drive["@odata.id"]).get("Inserted"):
            raise BmcError(
                Kind.FAULT, f"{self._redfish} was told to attach {image} and has not; can it fetch that address?"
            )

    def eject(self) -> None:
        """Take the image out, if there is one."""
        drive = self._drive()
        if drive.get("Inserted"):
            self._redfish.post(self._media_action(drive, "EjectMedia"), {})

    def _find(self) -> str:
        paths = list(self._members(self._redfish.get(ROOT).get("Systems")))
        for path in paths:
            if len(paths) == 1 or self._mac in self._macs(self._redfish.get(path)):
                return path
        raise BmcError(Kind.FAULT, f"{self._redfish} has {len(paths)} machines, and none with the MAC {self._mac}")

    def _system(self) -> Document:
        return self._redfish.get(self._path)

    def _macs(self, system: Document) -> tuple[str, ...]:
        """As the machine's interfaces have them; where ours isn't there, also as its cards have them."""
        found = [*self._macs_at(system.get("EthernetInterfaces"), ())]
        if self._mac not in found:
            for chassis in system.get("Links", {}).get("Chassis", ()):
                found += self._macs_of_cards(self._redfish.get(chassis["@odata.id"]))
        return tuple(dict.fromkeys(found))

    def _macs_of_cards(self, chassis: Document) -> Iterator[str]:
        """NetworkAdapter, NetworkDeviceFunction: the cards themselves, which some BMCs list nowhere else."""
        for adapter in self._members(chassis.get("NetworkAdapters")):
            yield from self._macs_at(self._redfish.get(adapter).get("NetworkDeviceFunctions"), ("Ethernet",))

    def _macs_at(self, link: Any, inside: tuple[str, ...]) -> Iterator[str]:
        for path in self._members(link):
            place: Any = self._redfish.get(path)
            for key in inside:
                place = place.get(key) or {}
            for key in ("PermanentMACAddress", "MACAddress"):
                mac = normal_mac(str(place.get(key) or ""))
                if len(mac.replace(":", "")) == _MAC_DIGITS:
                    yield mac

    def _members(self, link: Any) -> Iterator[str]:
        """Paths of a collection's members; none where it isn't there."""
        if isinstance(link, dict) and "@odata.id" in link:
            collection = self._redfish.get(link["@odata.id"])
            yield from (str(member["@odata.id"]) for member in collection.get("Members", ()))
            if "Members@odata.nextLink" in collection:
                yield from self._members({"@odata.id": collection["Members@odata.nextLink"]})

    def _drive(self) -> Document:
        """The virtual CD drive: of the machine since ComputerSystem 1.13, before that of its manager."""
        system = self._system()
        places = [system.get("VirtualMedia")]
        managers = system.get("Links", {}).get("ManagedBy", ())
        places += [self._redfish.get(manager["@odata.id"]).get("VirtualMedia") for manager in managers]
        for place in places:
            for path in self._members(place):
                drive = self._redfish.get(path)
                if {"CD", "DVD"} & set(drive.get("MediaTypes", ())):
                    return {**drive, "@odata.id": path}
        raise self._lacks("a virtual CD drive")

    def _media_action(self, drive: Document, name: str) -> str:
        action = drive.get("Actions", {}).get(f"#VirtualMedia.{name}", {})
        if "target" not in action:
            raise self._lacks(f"the action {name}")
        return str(action["target"])

    def _lacks(self, what: str) -> BmcError:
        return BmcError(Kind.MISSING, f"{self._redfish} lacks {what}; its firmware may be too old, or lack a licence")
