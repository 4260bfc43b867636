"""The refusals that clouds share, one small function each; their messages are in each cloud's table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from ipaddress import IPv4Network, ip_network

from sandbox.simcloud.changes import PropertyChange
from sandbox.simcloud.rules import Call, Place, Reason, RefusalError, Rule
from sandbox.simcloud.values import Properties, at
from sandbox.simcloud.world import Record


def bad_name(call: Call) -> None:
    """Refuse a name whose characters or length the cloud does not allow."""
    naming = call.type.naming
    if naming and call.name and (len(call.name) > naming.longest or not naming.pattern.fullmatch(call.name)):
        raise call.refusal(
            Reason.BAD_NAME,
            property_=naming.property,
            property=naming.property,
            words=naming.words,
            length=str(len(call.name)),
            longest=str(naming.longest),
            pattern=naming.pattern.pattern,
        )


def taken(call: Call) -> None:
    """Refuse an ID that is in use, or a name that is in use in the same region and parent."""
    if call.type.upserts:
        return
    naming = call.type.naming
    if call.world.find((call.type.token,), call.cloud.folded(call.id)):
        raise call.refusal(Reason.TAKEN)
    if naming is None or naming.within is None or not call.name:
        return
    for other in call.world.of_type(call.type.token):
        same = all(call.inputs.get(name) == other.inputs.get(name) for name in (naming.property, *naming.within))
        if same and other.region == call.region:
            parent = " ".join(str(call.inputs.get(name, "")) for name in naming.within)
            raise call.refusal(Reason.TAKEN, parent=parent)


def full(call: Call) -> None:
    """Refuse a resource above the account's quota for its type."""
    most = call.offers.most(call.cloud.name, call.region, call.type.token)
    others = [other for other in call.world.of_type(call.type.token) if other.region == call.region]
    if most is not None and len(others) >= most:
        raise call.refusal(Reason.FULL, most=str(most), have=str(len(others)))


def targets(call: Call) -> Iterator[tuple[Record, bool]]:
    """Yield each resource that the call refers to, and whether the reference keeps it from being deleted.

    Refuses references to missing resources and to resources in another region.
    """
    for reference in call.type.references:
        for text in at(call.inputs, reference.path):
            target = call.resolve(reference, str(text))
            if target is None and reference.optional:
                continue
            if target is None:
                type_ = call.cloud.types[reference.types[0]]
                resolved = reference.resolve(call, str(text))
                raise call.refusal(Reason.MISSING, of=type_, path=reference.path, value=resolved, by=call.id)
            if reference.local and target.region and call.region and target.region != call.region:
                type_ = call.cloud.types[target.type]
                raise call.refusal(
                    Reason.ELSEWHERE,
                    of=type_,
                    path=reference.path,
                    value=str(text),
                    by=call.id,
                    its_region=target.region,
                    region=call.region,
                )
            yield target, reference.holds


def fixed(call: Call, changes: Iterable[PropertyChange]) -> None:
    """Refuse an update of properties that the API cannot change."""
    for change in changes:
        if change.is_within(call.type.fixed):
            raise call.refusal(Reason.FIXED, path=change.path)


def protected(call: Call) -> None:
    """Refuse a deletion while deletion protection is on, or when a rule of the type forbids it."""
    for rule in call.type.refuse_deletion:
        rule(call)
    for path, value in call.type.protected_by.items():
        if call.inputs.get(path) == value:
            raise call.refusal(Reason.PROTECTED, path=path)


def held(call: Call, doomed: list[Record]) -> None:
    """Refuse a deletion while resources that stay depend on what would be deleted."""
    gone = {record.key for record in doomed}
    for record in doomed:
        users = [user for user in call.world.users(record) if user.key not in gone]
        if users:
            listed = ", ".join(str(user) for user in users)
            type_ = call.cloud.types.get(record.type)
            raise call.refusal(Reason.IN_USE, of=type_, value=record.id, user=users[0].id, users=listed)


def size_of_range(path: str, shortest: int, longest: int) -> Rule:
    """Return a rule: ranges at `path` have prefixes of `shortest` to `longest` bits, and no host bits."""

    def rule(call: Call) -> None:
        for text in at(call.inputs, path):
            network = _network(str(text))
            if network is None or not shortest <= network.prefixlen <= longest:
                raise call.refusal(
                    Reason.BAD_RANGE, property_=path, value=str(text), shortest=str(shortest), longest=str(longest)
                )

    return rule


def inside(path: str, parent: str, ranges: str) -> Rule:
    """Return a rule: ranges at `path` are inside the ranges at `ranges` of the resource that `parent` refers to."""

    def rule(call: Call) -> None:
        owner = call.target(parent)
        if owner is None:
            return
        allowed = list(networks(at(owner.inputs, ranges)))
        for network in networks(at(call.inputs, path)):
            if not any(network.subnet_of(outer) for outer in allowed):
                raise call.refusal(
                    Reason.OUTSIDE, value=str(network), parent=owner.id, ranges=", ".join(map(str, allowed))
                )

    return rule


def apart(parent: str, *paths: str) -> Rule:
    """Return a rule: ranges at `paths` do not overlap those of other resources of the same type and parent."""

    def rule(call: Call) -> None:
        owner = call.target(parent)
        for other in call.world.of_type(call.type.token):
            if owner is None or other.id == call.id or owner.key not in other.targets:
                continue
            for network in _ranges(call.inputs, paths):
                for existing in _ranges(other.inputs, paths):
                    if network.overlaps(existing):
                        raise overlap(call, network, existing, other.id, other.region)

    return rule


def apart_within(*paths: str) -> Rule:
    """Return a rule: ranges at `paths` do not overlap one another."""

    def rule(call: Call) -> None:
        ranges = list(_ranges(call.inputs, paths))
        for i, network in enumerate(ranges):
            for existing in ranges[:i]:
                if network.overlaps(existing):
                    raise overlap(call, network, existing, call.id, call.region)

    return rule


def overlap(call: Call, network: IPv4Network, existing: IPv4Network, other: str, region: str) -> RefusalError:
    """Return the refusal of a range. other, region: ID and region of the resource that already has it."""
    return call.refusal(
        Reason.OVERLAP,
        value=str(network),
        existing=str(existing),
        other=other,
        other_name=other.rpartition("/")[2],
        its_region=region,
    )


def offered(places: Callable[[Call], Iterable[Place]]) -> Rule:
    """Return a rule: the cloud offers these zones and machine types."""

    def rule(call: Call) -> None:
        for place in places(call):
            zones = ", ".join(call.offers.zones(place.cloud, place.region))
            is_zone = place.zone is None or place.zone in zones.split(", ")
            wrong = call.offers.refuse(place) if is_zone else f"zones of {place.region} are {zones}"
            if wrong is not None:
                reason = Reason.NO_MACHINE if is_zone and place.machine else Reason.NO_ZONE
                raise call.refusal(reason, zone=place.zone or "", zones=zones, machine=place.machine or "", wrong=wrong)

    return rule


def networks(texts: Iterable[object]) -> Iterator[IPv4Network]:
    """Yield the IPv4 networks among `texts`."""
    for text in texts:
        network = _network(str(text))
        if network is not None:
            yield network


def _ranges(inputs: Properties, paths: Iterable[str]) -> Iterator[IPv4Network]:
    return networks(text for path in paths for text in at(inputs, path))


def _network(text: str) -> IPv4Network | None:
    try:
        network = ip_network(text)
    except ValueError:
        return None
    return network if isinstance(network, IPv4Network) else None
