"""The table's rules, in the form of the kernel. Pure.

A packet that is routed or bridged between pods, or from or to a pod, passes the hook `forward` once. What a pod
exchanges with its own host passes `input` and `output`. There, Services are already translated to pods, and the source
is not yet masqueraded, so both ends are the real ones. The chains come after all filters, so what those drop does not
count, and they accept everything.

    forward:  broadcasts return; from a pod's interface: jump out-any; to a pod's interface: jump in-any
    out-any:  where the packet goes to decides: goto out-pod, out-ceph, ...
    out-pod:  counter by the pod's address, return; others: the counter of unknown pods
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from ipaddress import IPv4Address

from . import CLASSES, DIRECTIONS, IN, OUT
from .netlink import CREATE, Message, attribute, nested, word
from .plan import STORAGE, Interval, Plan

TABLE = "menagerie_traffic"
NEW_TABLE, GET_TABLE, DELETE_TABLE = 0, 1, 2
NEW_CHAIN, GET_CHAIN, DELETE_CHAIN = 3, 4, 5
NEW_RULE, GET_RULE, DELETE_RULE = 6, 7, 8
NEW_SET, GET_SET, DELETE_SET = 9, 10, 11
NEW_ELEMENTS, GET_ELEMENTS, DELETE_ELEMENTS = 12, 13, 14
GET_GENERATION = 16
NEW_OBJECT, GET_OBJECTS, DELETE_OBJECT = 18, 19, 20
AFTER_FILTERS = 300
"""Priority of our chains. Filters have 0 and `security` 50; masquerading has its own hook."""
ADDRESS_LIFE_S = 300
"""How long the kernel keeps an address that nobody confirms. Then its packets count as of an unknown pod."""
_HOOKS = {"input": 1, "forward": 2, "output": 3}
_SOURCE, _DESTINATION = 12, 16
_IIFNAME, _OIFNAME, _L4PROTO, _PKTTYPE = 6, 7, 16, 19
_TCP = 6
_NETWORK, _TRANSPORT = 1, 2
_EQUAL, _AT_MOST, _AT_LEAST = 0, 3, 5
_JUMP, _GOTO, _RETURN = -3, -4, -5
_IS_INTERVAL, _IS_MAP, _HAS_TIMEOUT, _HAS_OBJECTS = 4, 8, 0x10, 0x40
_IPV4_TYPE, _VERDICT_TYPE, _COUNTER = 7, 0xFFFFFF00, 1
_BROADCASTS = (1, 2)
"""PACKET_BROADCAST and PACKET_MULTICAST: a bridge sends them to every port, and each would count."""
_AT_ONCE = 500
"""Elements in a message, whose length has 16 bits."""


def counter(direction: str, kind: str, namespace: str = "") -> str:
    """Return the name of a counter; of unknown pods without a namespace."""
    return f"{direction}/{kind}/{namespace}" if namespace else f"{direction}/{kind}"


def named(name: str) -> tuple[str, str, str] | None:
    """Return (direction, class, namespace) of a counter's name, None if it is none of ours."""
    direction, _, rest = name.partition("/")
    kind, _, namespace = rest.partition("/")
    return (direction, kind, namespace) if direction in DIRECTIONS and kind in CLASSES else None


def chain(direction: str, kind: str = "") -> str:
    """Return the name of a chain, and of the map of addresses that it uses."""
    return f"{direction}-{kind or 'any'}"


def built(plan: Plan) -> list[Message]:
    """Return what makes the whole table except for its pods. Counters that exist go on."""
    messages = [_message(NEW_TABLE, attribute(1, TABLE), "the table")]
    messages += [new_counter(counter(direction, kind)) for direction in DIRECTIONS for kind in CLASSES]
    messages += [_base(name) for name in _HOOKS]
    for direction in DIRECTIONS:
        messages += [_chain(chain(direction, kind)) for kind in ("", STORAGE, *CLASSES)]
    for direction in DIRECTIONS:
        messages += [_addresses(chain(direction, kind)) for kind in CLASSES]
        messages += [_peers(direction), *_ranges(direction, plan.ranges)]
    return messages + [_rule(name, rule) for name, rules in rules_of(plan).items() for rule in rules]


def emptied(chains: Sequence[str], sets: Sequence[str]) -> list[Message]:
    """Return what removes all rules, and these chains and maps. Counters stay, with their values.

    A map goes before the chains that its elements name.
    """
    return [
        Message(DELETE_RULE, 0, attribute(1, TABLE), "the former rules"),
        *(Message(DELETE_SET, 0, attribute(1, TABLE) + attribute(2, name), f"map {name}") for name in sets),
        *(Message(DELETE_CHAIN, 0, attribute(1, TABLE) + attribute(3, name), f"chain {name}") for name in chains),
    ]


def removed() -> Message:
    return Message(DELETE_TABLE, 0, attribute(1, TABLE), "the table")


def rules_of(plan: Plan) -> dict[str, list[bytes]]:
    """Return chain -> the expressions of its rules, in order."""
    low, high = _BROADCASTS
    arriving = [_of_interface(_IIFNAME, name) + _verdict(_JUMP, chain(OUT)) for name in plan.interfaces]
    leaving = [_of_interface(_OIFNAME, name) + _verdict(_JUMP, chain(IN)) for name in plan.interfaces]
    broadcast = _meta(_PKTTYPE) + _compare(_AT_LEAST, bytes([low])) + _compare(_AT_MOST, bytes([high]))
    rules = {
        "forward": [broadcast + _verdict(_RETURN), *arriving, *leaving],
        "input": arriving,
        "output": leaving,
    }
    for direction, own, other in ((OUT, _SOURCE, _DESTINATION), (IN, _DESTINATION, _SOURCE)):
        by_peer = _load(other) + _expression(
            "lookup", attribute(1, _peers_of(direction)), attribute(2, 1), attribute(3, 0)
        )
        rules[chain(direction)] = [by_peer, _verdict(_GOTO, chain(direction, CLASSES[-1]))]
        of_ceph = [_of_ceph(span, other) + _verdict(_GOTO, chain(direction, "ceph")) for span in plan.ports]
        rules[chain(direction, STORAGE)] = [*of_ceph, _verdict(_GOTO, chain(direction, "site"))]
        for kind in CLASSES:
            name = chain(direction, kind)
            of_pod = _load(own) + _expression("objref", attribute(3, 1), attribute(4, name)) + _verdict(_RETURN)
            of_unknown = _expression("objref", attribute(1, _COUNTER), attribute(2, counter(direction, kind)))
            rules[name] = [of_pod, of_unknown]
    return rules


def new_counter(name: str) -> Message:
    body = attribute(1, TABLE) + attribute(2, name) + attribute(3, _COUNTER) + nested(4, word(1, 0), word(2, 0))
    return Message(NEW_OBJECT, CREATE, body, f"counter {name}")


def old_counter(name: str) -> Message:
    return Message(
        DELETE_OBJECT, 0, attribute(1, TABLE) + attribute(2, name) + attribute(3, _COUNTER), f"counter {name}"
    )


def attributed(pods: Mapping[str, str]) -> list[Message]:
    """Return what adds addresses: address -> namespace. Their counters must exist."""
    return [
        each
        for direction in DIRECTIONS
        for kind in CLASSES
        for each in _elements(
            NEW_ELEMENTS,
            chain(direction, kind),
            [
                nested(1, _key(address), attribute(9, counter(direction, kind, pods[address])))
                for address in sorted(pods)
            ],
        )
    ]


def detached(addresses: Sequence[str]) -> list[Message]:
    """Return what removes addresses, which must be there."""
    elements = [nested(1, _key(address)) for address in sorted(addresses)]
    return [
        each
        for direction in DIRECTIONS
        for kind in CLASSES
        for each in _elements(DELETE_ELEMENTS, chain(direction, kind), elements)
    ]


def _key(address: str) -> bytes:
    return nested(1, attribute(1, IPv4Address(address).packed))


def _elements(kind: int, name: str, elements: Sequence[bytes]) -> Iterator[Message]:
    for at in range(0, len(elements), _AT_ONCE):
        body = attribute(1, TABLE) + attribute(2, name) + nested(3, *elements[at : at + _AT_ONCE])
        yield Message(kind, CREATE if kind == NEW_ELEMENTS else 0, body, f"addresses of {name}")


def _message(kind: int, body: bytes, about: str) -> Message:
    return Message(kind, CREATE, body, about)


def _base(name: str) -> Message:
    hook = nested(4, attribute(1, _HOOKS[name]), attribute(2, AFTER_FILTERS))
    body = attribute(1, TABLE) + attribute(3, name) + hook + attribute(5, 1) + attribute(7, "filter")
    return _message(NEW_CHAIN, body, f"chain {name}")


def _chain(name: str) -> Message:
    return _message(NEW_CHAIN, attribute(1, TABLE) + attribute(3, name), f"chain {name}")


def _addresses(name: str) -> Message:
    """Return a map from addresses of pods to counters."""
    body = attribute(1, TABLE) + attribute(2, name) + attribute(3, _HAS_OBJECTS | _HAS_TIMEOUT)
    body += attribute(4, _IPV4_TYPE) + attribute(5, 4) + attribute(15, _COUNTER) + attribute(10, 1)
    return _message(NEW_SET, body + word(11, ADDRESS_LIFE_S * 1000), f"map {name}")


def _peers_of(direction: str) -> str:
    return f"{direction}-peers"


def _peers(direction: str) -> Message:
    """Return a map from ranges to chains."""
    body = attribute(1, TABLE) + attribute(2, _peers_of(direction)) + attribute(3, _IS_INTERVAL | _IS_MAP)
    body += attribute(4, _IPV4_TYPE) + attribute(5, 4) + attribute(6, _VERDICT_TYPE) + attribute(7, 16)
    return _message(NEW_SET, body + attribute(10, 2), f"map {_peers_of(direction)}")


def _ranges(direction: str, ranges: Sequence[Interval]) -> Iterator[Message]:
    """Yield the elements: an interval is one with its start, and one with the address after its end."""
    elements = []
    for each in ranges:
        target = nested(2, nested(2, attribute(1, _GOTO), attribute(2, chain(direction, each.of))))
        elements.append(nested(1, nested(1, attribute(1, struct.pack(">I", each.first))), target))
        after = each.last + 1
        if after < 1 << 32:
            elements.append(nested(1, nested(1, attribute(1, struct.pack(">I", after))), attribute(3, 1)))
    yield from _elements(NEW_ELEMENTS, _peers_of(direction), elements)


def _rule(name: str, expressions: bytes) -> Message:
    body = attribute(1, TABLE) + attribute(2, name) + nested(4, expressions)
    return Message(NEW_RULE, CREATE | 0x800, body, f"a rule of chain {name}")


def _expression(name: str, *data: bytes) -> bytes:
    return nested(1, attribute(1, name), nested(2, *data))


def _meta(key: int) -> bytes:
    return _expression("meta", attribute(2, key), attribute(1, 1))


def _load(offset: int, size: int = 4, header: int = _NETWORK) -> bytes:
    """Return the expression that loads a part of a header: an address of IPv4, or a port of TCP."""
    return _expression("payload", attribute(1, 1), attribute(2, header), attribute(3, offset), attribute(4, size))


def _of_ceph(span: tuple[int, int], end: int) -> bytes:
    """Compare the port of TCP at one end, its source or destination, with a span."""
    port = _load(0 if end == _SOURCE else 2, 2, _TRANSPORT)
    low, high = (struct.pack(">H", each) for each in span)
    is_tcp = _meta(_L4PROTO) + _compare(_EQUAL, bytes([_TCP]))
    return is_tcp + port + _compare(_AT_LEAST, low) + _compare(_AT_MOST, high)


def _compare(how: int, value: bytes) -> bytes:
    return _expression("cmp", attribute(1, 1), attribute(2, how), nested(3, attribute(1, value)))


def _of_interface(key: int, name: str) -> bytes:
    """Compare the whole name, or its start before a *."""
    value = name[:-1].encode() if name.endswith("*") else name.encode().ljust(16, b"\0")
    return _meta(key) + _compare(_EQUAL, value)


def _verdict(code: int, target: str = "") -> bytes:
    parts = [attribute(1, code), *([attribute(2, target)] if target else [])]
    return _expression("immediate", attribute(1, 0), nested(2, nested(2, *parts)))


def maps() -> list[str]:
    """Return the names of the maps from pods' addresses to counters."""
    return [chain(direction, kind) for direction in DIRECTIONS for kind in CLASSES]
