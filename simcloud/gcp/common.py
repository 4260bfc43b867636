"""What types of Google Cloud have in common."""

from __future__ import annotations

import re
from collections.abc import Callable

from simcloud.identifiers import digest, number
from simcloud.rules import Call, Naming, ResourceType
from simcloud.values import Properties

# RFC 1035, as every name of Compute Engine.
NAME = Naming(
    "name",
    re.compile(r"[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?"),
    63,
    "1 to 63 of a-z, 0-9 and hyphens, a letter first, no hyphen last",
)

_LINK = "https://www.googleapis.com/compute/v1/"


def path(collection: str) -> Callable[[Call], str]:
    """Ids like ``projects/p/regions/r/subnetworks/name``; global without a region or zone."""

    def identify(call: Call) -> str:
        scope = "global"
        if "zone" in call.type.where:
            scope = f"zones/{call.text('zone')}"
        elif "region" in call.type.where:
            scope = f"regions/{call.text('region')}"
        return f"projects/{call.text('project')}/{scope}/{collection}/{call.name}"

    return identify


def bare(call: Call, text: str) -> str:
    """A reference without the address of an API: links and ids of a thing are one."""
    return re.sub(r"^(https://[^/]+)?/?(compute/(v1|beta)/)?", "", text)


def outputs(**more: Callable[[Call], object]) -> Callable[[Call], Properties]:
    """The self link and times that everything has, and `more` by name, which an input overrides."""

    def made(call: Call) -> Properties:
        labels = {**call.settings.tags, **(call.inputs.get("labels") or {})}
        return {
            "selfLink": _LINK + call.id,
            "creationTimestamp": "2026-01-01T00:00:00.000-00:00",
            "fingerprint": digest(repr(sorted(call.inputs.items(), key=str)))[:12],
            "effectiveLabels": labels,
            "pulumiLabels": labels,
            **{name: call.inputs.get(name) or make(call) for name, make in more.items()},
        }

    return made


def numbered(call: Call) -> str:
    """The number that the API gives a resource beside its name."""
    return number(call.id)


def generic_type(token: str) -> ResourceType:
    """A type without rules: a name, a self link, and any change is an update."""
    collection = token.rpartition(":")[2]
    return ResourceType(
        token=token,
        noun=collection,
        identify=lambda call: call.fresh(
            lambda digits: f"projects/{call.settings.account}/{collection}/{call.text('name') or digits[:8]}"
        ),
        outputs=outputs(),
        is_proven=False,
    )
