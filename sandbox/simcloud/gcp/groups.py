"""Instance groups of Google Cloud."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from sandbox.simcloud.gcp.addresses import subnetwork_of
from sandbox.simcloud.gcp.common import REGIONAL, ZONAL, bare, compute, last, link, numbered
from sandbox.simcloud.gcp.network import IN_NETWORK
from sandbox.simcloud.gcp.tokens import (
    HEALTH_CHECK,
    INSTANCE,
    MANAGER,
    POLICY,
    REGION_HEALTH_CHECK,
    REGION_MANAGER,
    REGION_TEMPLATE,
    TEMPLATE,
)
from sandbox.simcloud.gcp.words import invalid
from sandbox.simcloud.refusals import offered
from sandbox.simcloud.rules import Call, Place, Reason, Reference, ResourceType
from sandbox.simcloud.values import Properties, at
from sandbox.simcloud.world import Record

TEMPLATES = (TEMPLATE, REGION_TEMPLATE)

# "InstanceGroupManager", Compute Engine API: Google appends a hyphen and four characters, or counts where the hash signs are.
_LONGEST_BASE = 58
_BASE = re.compile(r"[a-z]([-a-z0-9]{0,57}|[-a-z0-9]{0,51}-#{1,10}(\[[0-9]{1,10}\])?)")


def _template_link(call: Call, text: str) -> str:
    return bare(call, text).partition("?")[0]


def _templates(call: Call) -> Iterable[Record]:
    for text in at(call.inputs, "versions[].instanceTemplate"):
        yield from call.world.find(TEMPLATES, _template_link(call, str(text)))


def _places(call: Call) -> Iterable[Place]:
    """Yield the templates' machines in each zone of the group; a global template does not have zones."""
    zones = [last(str(text)) for text in (*at(call.inputs, "zone"), *at(call.inputs, "distributionPolicyZones[]"))]
    yield from (Place("gcp", call.region, zone) for zone in zones)
    for template in _templates(call):
        machine = last(str(template.inputs.get("machineType", "")))
        yield from (Place("gcp", call.region, zone, machine or None) for zone in zones or (None,))


def _zones(call: Call) -> list[str]:
    return list(call.offers.zones("gcp", call.region))


def _number_of_zones(call: Call) -> int:
    return len(list(at(call.inputs, "distributionPolicyZones[]")) or _zones(call))


def _base_name(call: Call) -> None:
    text = call.text("baseInstanceName")
    if text and not _BASE.fullmatch(text):
        raise invalid(
            "baseInstanceName", text, f"Must be a match of regex '{_BASE.pattern}'.",
            f"at most {_LONGEST_BASE} characters: Google adds five",
        )  # fmt: skip


def _near(call: Call) -> None:
    """Check that the templates' subnetworks are in the group's region."""
    for template in _templates(call):
        for text in at(template.inputs, "networkInterfaces[].subnetwork"):
            subnetwork = subnetwork_of(call, str(text))
            if subnetwork and subnetwork.region != call.region:
                raise call.refusal(
                    Reason.ELSEWHERE, path="versions[].instanceTemplate", value=template.id, by=call.id,
                    its_region=subnetwork.region,
                )  # fmt: skip


def _surge(call: Call) -> None:
    """Check how a regional group is rolled: fixed numbers are 0, or at least the number of zones."""
    policy = call.inputs.get("updatePolicy") or {}
    zones = _number_of_zones(call) if "region" in call.type.where else 1
    for name, field in (("maxSurgeFixed", "maxSurge"), ("maxUnavailableFixed", "maxUnavailable")):
        number = policy.get(name)
        if number is not None and 0 < int(number) < zones:
            raise invalid(
                f"updatePolicy.{field}.fixed", str(number),
                f"Fixed updatePolicy.{field} for regional managed instance group has to be either 0 or at least equal "
                "to the number of zones.",
                f"use 0, or at least {zones}",
            )  # fmt: skip
    _can_progress(policy)
    shape = call.text("distributionPolicyTargetShape")
    if shape in ("ANY", "ANY_SINGLE_ZONE", "BALANCED") and policy.get("instanceRedistributionType") != "NONE":
        raise invalid(
            "distributionPolicy.targetShape", shape, "Proactive instance redistribution must be disabled.",
            "set updatePolicy.instanceRedistributionType to NONE",
        )  # fmt: skip


def _can_progress(policy: Properties) -> None:
    if policy.get("replacementMethod") == "RECREATE" and (policy.get("maxSurgeFixed") or policy.get("maxSurgePercent")):
        raise invalid(
            "updatePolicy.maxSurge", str(policy.get("maxSurgeFixed") or policy.get("maxSurgePercent")),
            "maxSurge must be equal to 0 when replacement method is set to RECREATE",
            "set maxSurgeFixed to 0, or replacementMethod to SUBSTITUTE",
        )  # fmt: skip
    none = [
        policy.get(f"{name}Fixed") == 0 and not policy.get(f"{name}Percent") for name in ("maxSurge", "maxUnavailable")
    ]
    if all(none):
        raise invalid("updatePolicy", "", "maxSurge and maxUnavailable cannot both be 0.", "allow one of them")


def _instance_group(call: Call) -> str:
    return link(call).replace("/instanceGroupManagers/", "/instanceGroups/")


def _as_group(token: str) -> Callable[[Properties], list[tuple[str, str]]]:
    return lambda outputs: [(token, str(outputs["instanceGroup"]).partition("/compute/v1/")[2])]


def _manager(token: str, where: tuple[str, ...], more: tuple[str, ...]) -> ResourceType:
    computed = {"instanceGroup": _instance_group, "instanceGroupManagerId": numbered}
    return compute(
        token.rpartition(":")[2],
        "instance_group_manager",
        "instanceGroupManagers",
        where=where,
        computed=computed if "zone" in where else {**computed, "distributionPolicyZones": _zones},
        replace_on=("baseInstanceName", "targetSizePolicies[].mode", *more),
        references=(
            Reference("versions[].instanceTemplate", TEMPLATES, resolve=_template_link),
            Reference("autoHealingPolicies.healthCheck", (HEALTH_CHECK, REGION_HEALTH_CHECK), resolve=bare),
            Reference("resourcePolicies.workloadPolicy", (POLICY,), resolve=bare),
        ),
        refuse=(offered(_places), _base_name, _near, _surge),
        implied=_as_group(token),
    )


TYPES = (
    _manager(REGION_MANAGER, REGIONAL, ("description", "distributionPolicyZones")),
    _manager(MANAGER, ZONAL, ("description",)),
    compute(
        "InstanceGroup",
        "instance_group",
        "instanceGroups",
        where=ZONAL,
        computed={"size": lambda call: len(list(at(call.inputs, "instances[]")))},
        replace_on=("description", "network"),
        references=(IN_NETWORK, Reference("instances[]", (INSTANCE,), holds=False, resolve=bare)),
    ),
)
