"""Names in /dev/disk/by-id, by which specs say which disks are meant. Names of the kernel (sdb) change with a boot."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from pydantic import WithJsonSchema

from cluster.quantities import refuse

# udev's 60-persistent-storage.rules: serial numbers with "_" for what is not a letter, a digit or one of "#+-.:=@_".
_NAME = r"[A-Za-z0-9#+:=@_*?][A-Za-z0-9#+.:=@_*?-]*"
# What a name says that only tells the bus: nvme-*, scsi-3*.
_BUS = re.compile(r"((ata|nvme|scsi|wwn|usb|virtio|mmc|dm)[-_.]?)?(eui\.|uuid\.|0x)?")
_LETTERS_OF_A_MODEL = 4
SCHEMA = WithJsonSchema({"type": "string", "pattern": f"^{_NAME}$"})


def parser(code: str) -> Callable[[Any], Any]:
    """Takes a name, or one with * and ? in it, and refuses others with the code."""

    def parse(value: Any) -> Any:
        if isinstance(value, str) and not re.fullmatch(_NAME, value):
            hint = "write what `ls /dev/disk/by-id` shows, with * for the serial number: nvme-Micron_7450*"
            raise refuse(code, f"{value!r} can't be a name in /dev/disk/by-id", hint)
        return value

    return parse


def names_no_model(name: str) -> bool:
    """Whether it has a wildcard and says little more than the bus: every disk of a kind would be meant."""
    literal, *wild = re.split(r"[*?]", name, maxsplit=1)
    return bool(wild) and len(_BUS.sub("", literal, count=1)) < _LETTERS_OF_A_MODEL
