"""Names in /dev/disk/by-id, with which specs select disks. Kernel names (sdb) can change at boot."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from pydantic import WithJsonSchema

from cluster.quantities import refuse

# udev's 60-persistent-storage.rules: in serial numbers, "_" replaces all but letters, digits and "#+-.:=@_".
_NAME = r"[A-Za-z0-9#+:=@_*?][A-Za-z0-9#+.:=@_*?-]*"
# The part of a name that only identifies the bus: nvme-*, scsi-3*.
_BUS = re.compile(r"((ata|nvme|scsi|wwn|usb|virtio|mmc|dm)[-_.]?)?(eui\.|uuid\.|0x)?")
_LETTERS_OF_A_MODEL = 4
SCHEMA = WithJsonSchema({"type": "string", "pattern": f"^{_NAME}$"})


def parser(code: str) -> Callable[[Any], Any]:
    """Return a validator that accepts a name, with * and ? as wildcards, and refuses others with the code."""

    def parse(value: Any) -> Any:
        if isinstance(value, str) and not re.fullmatch(_NAME, value):
            hint = "write a name from `ls /dev/disk/by-id`, with * for the serial number, for example nvme-Micron_7450*"
            raise refuse(code, f"{value!r} can't be a name in /dev/disk/by-id", hint)
        return value

    return parse


def names_no_model(name: str) -> bool:
    """Return whether a name has a wildcard and identifies little more than the bus, so it matches every disk of a kind."""
    literal, *wild = re.split(r"[*?]", name, maxsplit=1)
    return bool(wild) and len(_BUS.sub("", literal, count=1)) < _LETTERS_OF_A_MODEL
