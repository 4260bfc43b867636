"""A port's desired settings, and how it differs from them. Pure."""

from __future__ import annotations

from typing import Any, NamedTuple

PAUSE, DCBX, TRUST, PFC, TOS = "global pause", "DCBX", "trust", "PFC", "ToS of RDMA-CM"
NP, RP, TC, CNP_DSCP, CNP_PRIO = "ECN, receiving", "ECN, sending", "traffic class", "DSCP of CNPs", "priority of CNPs"
ACCEL, MTU, SPEED = "recovery from loss", "link MTU", "speed in Gbit/s"
# Setting -> why a host without it can still be used.
OPTIONAL = {
    PAUSE: "this driver has no pause frames to turn off",
    DCBX: "this mlnx_qos does not say who controls it",
    TC: "this driver has no traffic class for a whole port; NCCL and RDMA-CM mark their packets themselves",
    NP: "this driver has no switch for it; the firmware's default is on",
    RP: "this driver has no switch for it; the firmware's default is on",
    CNP_DSCP: "this driver can't set it; the firmware's default is 48",
    CNP_PRIO: "this driver can't set it; the firmware's default is 6",
    SPEED: "the link is down",
    ACCEL: "neither mlxreg nor mstreg is here, or the card has no register ROCE_ACCL",
}
NOT_SET = "not set"
# Only compared: role links or the host's network configuration sets the MTU, and the cable decides the speed.
LOOKED_AT = (MTU, SPEED)


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


def desired(settings: Settings, driver: str) -> dict[str, Value]:
    """Return setting -> value, in the order in which to set them: settings that reset others come first."""
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


def fits(value: Value, actual: str) -> bool:
    if isinstance(value, Between):
        return actual.isdigit() and value.low <= int(actual) <= value.high
    return value == actual


def decide(values: dict[str, Value], actual: dict[str, str | None]) -> tuple[Differ, list[str]]:
    """Return (settings that differ: name -> (actual, desired), why others are left out)."""
    differ: Differ = {}
    notes: list[str] = []
    for name, value in values.items():
        current = actual.get(name)
        if current is None and name in OPTIONAL:
            notes.append(f"{name} is left alone: {OPTIONAL[name]}")
        elif current is None or not fits(value, current):
            differ[name] = (current or "unreadable", str(value))
    return differ, notes


def smaller_mtu(link_mtu: int) -> int:
    """Return the RDMA MTU that Linux chooses (iboe_get_mtu): 96 bytes are for headers."""
    return max([mtu for mtu in (256, 512, 1024, 2048, 4096) if mtu + 96 <= link_mtu], default=0)


def explained(name: str, actual: str, value: str, settings: Settings) -> str:
    """Return one difference as a sentence."""
    if name == MTU and actual.isdigit() and int(actual) < settings["least_link_mtu"]:
        mtu, least = settings["mtu"], settings["least_link_mtu"]
        return (
            f"roce.mtu {mtu} needs link MTU {least} or more on every hop; the port has {actual} "
            f"(RDMA would drop to {smaller_mtu(int(actual))})"
        )
    return f"{name} is {actual}, wanted {value}"
