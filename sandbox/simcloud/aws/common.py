"""What types of AWS have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from sandbox.simcloud.aws.tokens import VPC
from sandbox.simcloud.rules import Call, RefusalError, ResourceType
from sandbox.simcloud.values import Properties, at
from sandbox.simcloud.world import Record


def made_up(prefix: str) -> Callable[[Call], str]:
    """Ids like ``vpc-0a1b2c3d4e5f67890``."""
    return lambda call: call.fresh(lambda digits: f"{prefix}-0{digits[:16]}")


def by_name(call: Call) -> str:
    """Ids that are the name."""
    return call.name


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


def refused(code: str, text: str, way_out: str, property_: str = "") -> RefusalError:
    """A refusal that only one type knows. code: AWS's; "" for what the provider refuses before it asks AWS."""
    return RefusalError(f"api error {code}: {text}; {way_out}" if code else f"{text}; {way_out}", property_)


def others(call: Call) -> Iterator[Record]:
    """Resources of the same type and region."""
    for other in call.world.of_type(call.type.token):
        if other.id != call.id and other.region == call.region:
            yield other


def named(call: Call, *paths: str) -> list[Record]:
    """What the references at these paths name."""
    found = [
        call.resolve(reference, str(text))
        for reference in call.type.references
        if reference.path in paths
        for text in at(call.inputs, reference.path)
    ]
    return [record for record in found if record is not None]


def vpc_of(record: Record) -> str:
    """The VPC that something lies in; what comes with a VPC is found as the VPC itself."""
    return record.id if record.type == VPC else str(record.outputs.get("vpcId", ""))


def number(call: Call, path: str, default: int = 0) -> int:
    """The number at a path."""
    return next((int(value) for value in at(call.inputs, path)), default)
