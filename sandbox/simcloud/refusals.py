"""What clouds refuse, one small function each; the words are in each cloud's table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from ipaddress import IPv4Network, ip_network

from sandbox.simcloud.changes import Change
from sandbox.simcloud.rules import Call, Place, Reason, RefusalError, Rule
from sandbox.simcloud.values import Properties, at
from sandbox.simcloud.world import Record


def bad_name(call: Call) -> None:
    """The name has a form or a length that the cloud does not allow."""
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
    """Something has the id already, or the name in the same region and parent."""
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


def targets(call: Call) -> Iterator[tuple[Record, bool]]:
    """What the call names, and whether it holds it. Refuses names of nothing and of things in another region."""
    for reference in call.type.references:
        for text in at(call.inputs, reference.path):
            found = call.resolve(reference, str(text))
            if found is None and reference.optional:
                continue
            if found is None:
                wanted = call.cloud.types[reference.types[0]]
                resolved = reference.resolve(call, str(text))
                raise call.refusal(Reason.MISSING, of=wanted, path=reference.path, value=resolved, by=call.id)
            if reference.local and found.region and call.region and found.region != call.region:
                wanted = call.cloud.types[found.type]
                raise call.refusal(
                    Reason.ELSEWHERE,
                    of=wanted,
                    path=reference.path,
                    value=str(text),
                    by=call.id,
                    its_region=found.region,
                    region=call.region,
                )
            yield found, reference.holds


def fixed(call: Call, changes: Iterable[Change]) -> None:
    """An update changes what the API cannot change."""
    for change in changes:
        if change.is_within(call.type.fixed):
            raise call.refusal(Reason.FIXED, path=change.path)


def protected(call: Call) -> None:
    """Deletion protection is on, or the type has a rule of its own against it."""
    for rule in call.type.refuse_deletion:
        rule(call)
    for path, value in call.type.protected_by.items():
        if call.inputs.get(path) == value:
            raise call.refusal(Reason.PROTECTED, path=path)


def held(call: Call, doomed: list[Record]) -> None:
    """Something that stays needs what is to be deleted."""
    gone = {record.key for record in doomed}
    for record in doomed:
        users = [user for user in call.world.users(record) if user.key not in gone]
        if users:
            listed = ", ".join(str(user) for user in users)
            type_ = call.cloud.types.get(record.type)
            raise call.refusal(Reason.IN_USE, of=type_, value=record.id, user=users[0].id, users=listed)


def size_of_range(path: str, shortest: int, longest: int) -> Rule:
    """Ranges at `path` have prefixes of `shortest` to `longest` bits, and no host bits."""

    def rule(call: Call) -> None:
        for text in at(call.inputs, path):
            network = _network(str(text))
            if network is None or not shortest <= network.prefixlen <= longest:
                raise call.refusal(
                    Reason.BAD_RANGE, property_=path, value=str(text), shortest=str(shortest), longest=str(longest)
                )

    return rule


def inside(path: str, parent: str, ranges: str) -> Rule:
    """Ranges at `path` lie in those at `ranges` of what the reference at `parent` names."""

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
    """Ranges at `paths` overlap none of the others of the same type and parent."""

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
    """Ranges at `paths` overlap none of each other."""

    def rule(call: Call) -> None:
        found = list(_ranges(call.inputs, paths))
        for i, network in enumerate(found):
            for existing in found[:i]:
                if network.overlaps(existing):
                    raise overlap(call, network, existing, call.id, call.region)

    return rule


def overlap(call: Call, network: IPv4Network, existing: IPv4Network, other: str, region: str) -> RefusalError:
    """The refusal of a range. other, region: id and region of what has it already."""
    return call.refusal(
        Reason.OVERLAP,
        value=str(network),
        existing=str(existing),
        other=other,
        other_name=other.rpartition("/")[2],
        its_region=region,
    )


def offered(places: Callable[[Call], Iterable[Place]]) -> Rule:
    """The cloud offers these zones and machine types."""

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
    """The IPv4 networks among some texts."""
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
