"""Amazon Web Services: the behaviour of its API and of the provider `aws`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace

from sandbox.simcloud.aws import (
    compute,
    disks,
    dns,
    endpoints,
    files,
    identity,
    interfaces,
    keys,
    limits,
    listeners,
    load_balancing,
    network,
    scaling,
    secrets,
    security,
    storage,
    vpn,
)
from sandbox.simcloud.aws.common import generic_type
from sandbox.simcloud.aws.functions import FUNCTIONS
from sandbox.simcloud.aws.tagging import tagged
from sandbox.simcloud.aws.words import SAYS
from sandbox.simcloud.limits import limited
from sandbox.simcloud.rules import Call, Cloud, RefusalError, ResourceType, Settings
from sandbox.simcloud.values import Value

# The account ID in AWS's own examples.
_ACCOUNT = "123456789012"


def _configure(inputs: Mapping[str, Value]) -> Settings:
    region = inputs.get("region")
    if not region:
        raise RefusalError(
            'missing required configuration key "aws:region": the region where AWS operations will take place; '
            "set it with `pulumi config set aws:region <region>` or on the provider (simcloud reads no environment)"
        )
    defaults = inputs.get("defaultTags") or "{}"
    tags = (json.loads(defaults) if isinstance(defaults, str) else defaults).get("tags") or {}
    return Settings(account=_ACCOUNT, region=region, tags=tags)


def _place_of(call: Call, _: str) -> str | None:
    return call.settings.region


_GLOBAL = ("aws:iam/", "aws:route53/")
_PARTS = (
    *(network, security, interfaces, endpoints, vpn),
    *(identity, keys, secrets, storage, disks, files),
    *(compute, scaling, load_balancing, listeners, dns),
)


def _region_of(call: Call) -> str:
    if call.type.token.startswith(_GLOBAL):
        return ""
    return str(call.inputs.get("region") or call.settings.region)


def _ruled(type_: ResourceType) -> ResourceType:
    """Return the type with its limits, and with the rules for tags, which apply to every type."""
    return limited(replace(type_, refuse=(*type_.refuse, tagged)), limits.LIMITS)


CLOUD = Cloud(
    package="aws",
    name="aws",
    types={type_.token: _ruled(type_) for part in _PARTS for type_ in part.TYPES},
    unruled=lambda token: _ruled(generic_type(token)),
    says=SAYS,
    configure=_configure,
    place_of=_place_of,
    place_missing={},
    region_of=_region_of,
    functions=FUNCTIONS,
    refers_by=("arn",),
    suffix=("-", 7),
)
