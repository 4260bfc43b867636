from __future__ import annotations

from stacks import policies


def test_every_rule_is_listed(menagerie):
    ran = menagerie("show", "policies")
    assert ran.code == 0
    assert [rule.id for rule in policies.RULES if f"  {rule.id} " not in ran.out] == []


def test_in_json_every_rule_has_its_subject(menagerie):
    rules = menagerie("show", "policies", "--json").json["policies"]
    assert [rule["id"] for rule in rules] == [rule.id for rule in policies.RULES]
    assert {rule["subject"] for rule in rules} == set(policies.BY_SUBJECT)
