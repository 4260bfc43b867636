from __future__ import annotations

from stacks import policies


def test_every_rule_is_told_with_what_it_wants(menagerie):
    told = menagerie("show", "policies")
    assert told.code == 0
    assert [rule.id for rule in policies.RULES if f"  {rule.id} " not in told.out] == []


def test_as_json_every_rule_has_its_subject(menagerie):
    found = menagerie("show", "policies", "--json").json["policies"]
    assert [rule["id"] for rule in found] == [rule.id for rule in policies.RULES]
    assert {rule["subject"] for rule in found} == set(policies.BY_SUBJECT)
