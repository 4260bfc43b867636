"""The table's rules as messages for the kernel, and what is refused before any is sent."""

from __future__ import annotations

from ipaddress import IPv4Address

import pytest
from menagerie_traffic import CLASSES, DIRECTIONS, Refused, layout, plan
from menagerie_traffic.netlink import attributes, nested, pairs, text

CLASSES_OF = {"pod": ["10.200.0.0/16"], "ceph": ["10.78.1.9/32", "10.79.0.0/24"], "region": ["10.77.0.0/16"]}

GIVEN = {"classes": CLASSES_OF, "interfaces": ["cni0"], "ceph_ports": ["3300", "6800-7568"]}


def elements(messages: list[layout.Message]) -> list[tuple[int, bytes]]:
    """Return (kind of message, an element) for every element of every message."""
    bodies = [(each.kind, attributes(each.body)[3]) for each in messages]
    return [(kind, element) for kind, body in bodies for _, element in pairs(body)]


def test_ranges_become_intervals_in_order() -> None:
    ranges = plan.intervals(CLASSES_OF)
    assert [(str(IPv4Address(each.first)), str(IPv4Address(each.last)), each.of) for each in ranges] == [
        ("10.77.0.0", "10.77.255.255", "region"),
        ("10.78.1.9", "10.78.1.9", "ceph"),
        ("10.79.0.0", "10.79.0.255", "ceph"),
        ("10.200.0.0", "10.200.255.255", "pod"),
    ]


@pytest.mark.parametrize(
    ("classes", "why"),
    [
        ({"pods": []}, "no class is called pods; there are pod, ceph, region, site, storage"),
        ({"internet": ["0.0.0.0/0"]}, "no class is called internet"),
        ({"pod": ["10.0.0.1/8"]}, r"traffic_classes.pod: 10.0.0.1/8 has host bits set; write a range such as"),
        ({"pod": ["fd00::/8"]}, "traffic_classes.pod: .*write a range"),
        ({"pod": ["10.0.0.0/8"], "site": ["10.1.0.0/16"]}, "10.1.0.0 is in ranges of pod and of site"),
        ({"pod": ["10.0.0.0/8", "10.0.0.0/8"]}, "10.0.0.0 is in ranges of pod and of pod"),
    ],
)
def test_classes_that_no_table_can_have_are_refused(classes: dict[str, list[str]], why: str) -> None:
    with pytest.raises(Refused, match=why):
        plan.intervals(classes)


def test_another_layout_has_another_word() -> None:
    one = plan.planned(GIVEN)
    assert one.digest() == plan.planned({**GIVEN, "classes": dict(reversed(CLASSES_OF.items()))}).digest()
    changes = ({"interfaces": ["cni1"]}, {"ceph_ports": []}, {"classes": {}})
    assert len({one.digest(), *(plan.planned({**GIVEN, **change}).digest() for change in changes)}) == 4


@pytest.mark.parametrize("text", ["", "0", "70000", "7-3", "a", "1-2-3", "-5"])
def test_what_is_no_port_is_refused(text: str) -> None:
    with pytest.raises(Refused, match="traffic_ceph_ports: .* is no port"):
        plan.ports([text])
    assert plan.ports(["3300", "6800-7568"]) == [(3300, 3300), (6800, 7568)]


def test_names_of_counters_lead_back_to_what_they_count() -> None:
    for direction in DIRECTIONS:
        for kind in CLASSES:
            assert layout.named(layout.counter(direction, kind, "kube-system")) == (direction, kind, "kube-system")
            assert layout.named(layout.counter(direction, kind)) == (direction, kind, "")
    assert layout.named("out") is None
    assert layout.named("up/pod/a") is None


def test_the_longest_name_of_a_namespace_fits_into_the_name_of_a_counter() -> None:
    """The kernel takes 255 characters (NFT_OBJ_MAXNAMELEN)."""
    assert len(layout.counter("out", "internet", "n" * 63)) < 255


def test_an_address_gets_a_counter_for_each_direction_and_class() -> None:
    messages = layout.attributed({"10.200.1.5": "a", "10.200.1.6": "b"})
    assert [text(attributes(each.body)[2]) for each in messages] == layout.maps()
    held = [(attributes(attributes(element)[1])[1], text(attributes(element)[9])) for _, element in elements(messages)]
    assert len(held) == 2 * len(DIRECTIONS) * len(CLASSES)
    assert (IPv4Address("10.200.1.6").packed, "in/ceph/b") in held
    assert all(name.endswith("/a") == (address[-1] == 5) for address, name in held)


def test_many_addresses_are_sent_in_several_messages_because_lengths_have_16_bits() -> None:
    pods = {str(IPv4Address(0x0AC80000 + index)): f"namespace-{index % 7}" for index in range(1200)}
    messages = [*layout.attributed(pods), *layout.detached(list(pods))]
    assert all(len(each.body) < 0xFFFF for each in messages)
    assert len(elements(messages)) == 2 * 1200 * len(DIRECTIONS) * len(CLASSES)


def test_rules_never_decide_about_a_packet() -> None:
    """Only jumps, gotos and returns: no accept, which would be for this hook, and no drop."""
    verdicts = set()
    for rules in layout.rules_of(plan.planned({**GIVEN, "interfaces": ["cni0", "lxc*"]})).values():
        for rule in rules:
            for _, expression in pairs(rule):
                fields = attributes(expression)
                if text(fields[1]) == "immediate":
                    (verdict,) = [value for _, value in pairs(attributes(fields[2])[2])]
                    verdicts.add(int.from_bytes(attributes(verdict)[1], "big", signed=True))
    assert verdicts == {-3, -4, -5}


def test_attributes_survive_their_own_form() -> None:
    assert attributes(nested(3, layout.attribute(1, "x"), layout.attribute(2, 7))[4:]) == {1: b"x\0", 2: b"\0\0\0\7"}
