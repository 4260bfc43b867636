"""A machine's BMC: the machine's identity, its power, what it draws, and what it boots from next."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from operations.provisioning import power
from operations.provisioning.machines import normal_mac
from operations.provisioning.redfish import ROOT, BmcError, BmcErrorKind, Document, Redfish

_MAC_DIGITS = 12


class BootTarget(StrEnum):
    """Targets for a one-time boot (ComputerSystem.Boot.BootSourceOverrideTarget)."""

    NETWORK = "Pxe"
    MEDIA = "Cd"
    DISK = "Hdd"


@dataclass(frozen=True)
class MachineReport:
    """A BMC's report on its machine. macs: empty if the BMC does not know the machine's cards, as before its first start."""

    model: str
    serial: str
    power: str
    macs: tuple[str, ...]


class Bmc:
    """One machine, through a logged-in BMC. mac: identifies the machine if the BMC serves several."""

    def __init__(self, redfish: Redfish, mac: str) -> None:
        self._redfish = redfish
        self._mac = mac
        self._path = self._find()

    def report(self) -> MachineReport:
        """Return the machine's identity and power state."""
        system = self._system()
        model = " ".join(str(system[key]) for key in ("Manufacturer", "Model") if system.get(key))
        power = str(system.get("PowerState", "unknown"))
        return MachineReport(model, str(system.get("SerialNumber") or ""), power, self._macs(system))

    @property
    def is_on(self) -> bool | None:
        """Whether it is on; None while that changes: PoweringOn, PoweringOff."""
        return {"On": True, "Off": False}.get(str(self._system().get("PowerState")))

    def watts(self) -> int:
        """Return what the machine draws now. Raises BmcError if the BMC does not say."""
        return power.watts(self._redfish, self._path, self._system())

    def turn(self, *, on: bool) -> None:
        """Turn it on, or off without a clean shutdown. Returns before it is done, which takes some seconds."""
        action = self._system().get("Actions", {}).get("#ComputerSystem.Reset", {})
        kinds = ("On", "ForceOn") if on else ("ForceOff",)
        allowed = action.get("ResetType@Redfish.AllowableValues", kinds)
        chosen = next((kind for kind in kinds if kind in allowed), None)
        if chosen is None or "target" not in action:
            raise self._lacks(f"the action Reset with {' or '.join(kinds)}")
        self._redfish.post(action["target"], {"ResetType": chosen})

    def boot_once(self, target: BootTarget) -> None:
        """Boot from `target` once, in the machine's current mode (UEFI or Legacy).

        The mode is sent as well, because some BMCs change to Legacy without it. The setting is read back, because some BMCs
        accept settings that they don't keep.
        """
        boot = self._system().get("Boot", {})
        if target not in boot.get("BootSourceOverrideTarget@Redfish.AllowableValues", [target]):
            raise self._lacks(f"booting from {target}")
        settings = {"BootSourceOverrideEnabled": "Once", "BootSourceOverrideTarget": str(target)}
        if mode := boot.get("BootSourceOverrideMode"):
            settings["BootSourceOverrideMode"] = mode
        self._redfish.patch(self._path, {"Boot": settings})
        if self._system().get("Boot", {}).get("BootSourceOverrideTarget") != target:
            raise BmcError(
                BmcErrorKind.FAULT, f"{self._redfish} accepted booting from {target}, but did not keep the setting"
            )

    def boot_from_disk(self) -> None:
        """Reset a boot override that is still set: some BMCs keep one-time overrides."""
        boot = self._system().get("Boot", {})
        overridden = boot.get("BootSourceOverrideTarget") in (BootTarget.NETWORK, BootTarget.MEDIA)
        if overridden and boot.get("BootSourceOverrideEnabled") != "Disabled":
            self.boot_once(BootTarget.DISK)

    def insert(self, image: str) -> None:
        """Attach an image as a CD. Eject another attached image first."""
        drive = self._drive()
        if drive.get("Inserted"):
            if drive.get("Image") == image:
                return
            self.eject()
        target = self._media_action(drive, "InsertMedia")
        self._redfish.post(target, {"Image": image, "Inserted": True, "WriteProtected": True})
        if not self._redfish.get(drive["@odata.id"]).get("Inserted"):
            raise BmcError(
                BmcErrorKind.FAULT, f"{self._redfish} did not attach {image}; check that it can reach that address"
            )

    def eject(self) -> None:
        """Eject the image, if there is one."""
        drive = self._drive()
        if drive.get("Inserted"):
            self._redfish.post(self._media_action(drive, "EjectMedia"), {})

    def _find(self) -> str:
        paths = list(self._members(self._redfish.get(ROOT).get("Systems")))
        for path in paths:
            if len(paths) == 1 or self._mac in self._macs(self._redfish.get(path)):
                return path
        raise BmcError(BmcErrorKind.FAULT, f"{self._redfish} has {len(paths)} machines, none with the MAC {self._mac}")

    def _system(self) -> Document:
        return self._redfish.get(self._path)

    def _macs(self, system: Document) -> tuple[str, ...]:
        """Return the MACs of the machine's interfaces; if ours is not among them, also those of its cards."""
        macs = [*self._macs_at(system.get("EthernetInterfaces"), ())]
        if self._mac not in macs:
            for chassis in system.get("Links", {}).get("Chassis", ()):
                macs += self._macs_of_cards(self._redfish.get(chassis["@odata.id"]))
        return tuple(dict.fromkeys(macs))

    def _macs_of_cards(self, chassis: Document) -> Iterator[str]:
        """Yield the MACs of the cards (NetworkAdapter, NetworkDeviceFunction): some BMCs list MACs only there."""
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
        """Yield the paths of a collection's members; nothing if the collection does not exist."""
        if isinstance(link, dict) and "@odata.id" in link:
            collection = self._redfish.get(link["@odata.id"])
            yield from (str(member["@odata.id"]) for member in collection.get("Members", ()))
            if "Members@odata.nextLink" in collection:
                yield from self._members({"@odata.id": collection["Members@odata.nextLink"]})

    def _drive(self) -> Document:
        """Return the virtual CD drive: the machine's since ComputerSystem 1.13, before that the manager's."""
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
        return BmcError(
            BmcErrorKind.MISSING,
            f"{self._redfish} lacks {what}; its firmware may be too old, or a licence may be missing",
        )
