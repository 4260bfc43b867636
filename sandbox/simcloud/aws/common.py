"""What the types of AWS have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from sandbox.simcloud.aws.tokens import VPC
from sandbox.simcloud.rules import Call, RefusalError, ResourceType
from sandbox.simcloud.values import Properties, at
from sandbox.simcloud.world import Record


def generated_id(prefix: str) -> Callable[[Call], str]:
    """Return a function that makes IDs like ``vpc-0a1b2c3d4e5f67890``."""
    return lambda call: call.fresh(lambda digits: f"{prefix}-0{digits[:16]}")


def by_name(call: Call) -> str:
    """Return the name as the ID."""
    return call.name


def arn(call: Call, service: str, resource: str) -> str:
    """Return the ARN of a regional resource."""
    return f"arn:aws:{service}:{call.region}:{call.settings.account}:{resource}"


def tags(call: Call) -> Properties:
    """Return the resource's tags, added to the provider's."""
    return {"tagsAll": {**call.settings.tags, **(call.inputs.get("tags") or {})}}


def ec2(kind: str, **more: Callable[[Call], object]) -> Callable[[Call], Properties]:
    """Return outputs of an EC2 resource: its ARN, owner, tags, and `more` by name, which inputs override.

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
    """Return a type without rules: it has an ARN, and any change is an update."""
    service = token.split(":")[1].partition("/")[0]
    kind = token.rpartition(":")[2].lower()
    return ResourceType(
        token=token,
        noun=kind,
        identify=generated_id(kind),
        outputs=lambda call: {"arn": arn(call, service, f"{kind}/{call.id}"), **tags(call)},
        is_proven=False,
    )


def refused(code: str, text: str, way_out: str, property_: str = "") -> RefusalError:
    """Return a refusal specific to one type. code: AWS's; "" for what the provider refuses before it calls AWS."""
    return RefusalError(f"api error {code}: {text}; {way_out}" if code else f"{text}; {way_out}", property_)


def others(call: Call) -> Iterator[Record]:
    """Yield the other resources of the same type and region."""
    for other in call.world.of_type(call.type.token):
        if other.id != call.id and other.region == call.region:
            yield other


def named(call: Call, *paths: str) -> list[Record]:
    """Return the resources that the references at these paths refer to."""
    targets = [
        call.resolve(reference, str(text))
        for reference in call.type.references
        if reference.path in paths
        for text in at(call.inputs, reference.path)
    ]
    return [record for record in targets if record is not None]


def vpc_of(record: Record) -> str:
    """Return the ID of a resource's VPC. Resources that come with a VPC are found as the VPC itself."""
    return record.id if record.type == VPC else str(record.outputs.get("vpcId", ""))


def number(call: Call, path: str, default: int = 0) -> int:
    """Return the number at a path."""
    return next((int(value) for value in at(call.inputs, path)), default)
