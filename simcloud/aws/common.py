"""What types of AWS have in common."""

from __future__ import annotations

from collections.abc import Callable

from simcloud.rules import Call, ResourceType
from simcloud.values import Properties


def made_up(prefix: str) -> Callable[[Call], str]:
    """Ids like ``vpc-0a1b2c3d4e5f67890``."""
    return lambda call: call.fresh(lambda digits: f"{prefix}-0{digits[:16]}")


def arn(call: Call, service: str, resource: str) -> str:
    """The ARN of a regional resource."""
    return f"arn:aws:{service}:{call.region}:{call.settings.account}:{resource}"


def tags(call: Call) -> Properties:
    """Tags of the resource over those of the provider."""
    return {"tagsAll": {**call.settings.tags, **(call.inputs.get("tags") or {})}}


def ec2(kind: str, **more: Callable[[Call], object]) -> Callable[[Call], Properties]:
    """Outputs of a resource of EC2: its ARN, owner, tags, and `more` by name, which an input overrides.

    kind: as in the ARN: ``vpc``, ``security-group``.
    """

    def outputs(call: Call) -> Properties:
        own = {name: call.inputs.get(name) or make(call) for name, make in more.items()}
        return {
            "arn": arn(call, "ec2", f"{kind}/{call.id}"),
            "ownerId": call.settings.account,
            "region": call.region,
            **tags(call),
            **own,
        }

    return outputs


def generic_type(token: str) -> ResourceType:
    """A type without rules: an ARN, and any change is an update."""
    service = token.split(":")[1].partition("/")[0]
    kind = token.rpartition(":")[2].lower()
    return ResourceType(
        token=token,
        noun=kind,
        identify=made_up(kind),
        outputs=lambda call: {"arn": arn(call, service, f"{kind}/{call.id}"), **tags(call)},
        is_proven=False,
    )
