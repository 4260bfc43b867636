"""Rules that a stack's resources must follow, over plain data. Pure.

A rule is a function that takes a cluster and its resources and yields violations; it does no I/O and does not depend on
the engine. There are no exception lists: exceptions are part of the rule's code.
To add a rule, write it in its own file or next to similar ones and add it to `RULES`; `make golden` writes
docs/reference/policies.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cluster.spec import Cluster
from stacks.policies import addresses, data, encryption, etcd, identities, places, stores, tags, user_data
from stacks.policies.model import Resource, Rule, Violation

__all__ = ["BY_SUBJECT", "RULES", "check"]

BY_SUBJECT: Mapping[str, tuple[Rule, ...]] = {
    "Data": data.RULES,
    "Encryption": encryption.RULES,
    "Exposure": (*addresses.RULES, *stores.RULES),
    "Identities": identities.RULES,
    "User data": user_data.RULES,
    "Places": places.RULES,
    "etcd": etcd.RULES,
    "Tags": tags.RULES,
}

RULES: tuple[Rule, ...] = tuple(rule for rules in BY_SUBJECT.values() for rule in rules)


def check(cluster: Cluster, resources: Sequence[Resource]) -> list[Violation]:
    """Return all violations by a cluster's resources, in the order of the rules, then of the resources."""
    return [violation for rule in RULES for violation in rule.violations(cluster, resources)]
