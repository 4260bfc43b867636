"""What a stack's resources must be, as rules over plain data. Pure.

A rule is a function of a cluster and its resources that yields violations; it does no I/O and knows no engine. There
are no exceptions to be written down anywhere: what a rule must let pass, it says itself.
To add one, write it into a file of its own or beside its like, and put it into `RULES`; `make golden` writes
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
    """Everything that is wrong with the resources of a cluster, in the order of the rules and of the resources."""
    return [violation for rule in RULES for violation in rule.violations(cluster, resources)]
