"""Every rule with what keeps it and what breaks it, and the list of rules for people."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest

from cluster.spec import Cluster
from sandbox.simcloud.server import CLOUDS
from stacks import policies
from stacks.policies.data import STORES
from stacks.policies.model import SECRET
from stacks.policies.reference import reference
from stacks.policies.tags import TAGGED
from tests.policies.rows import CASES
from tests.policies.support import REGIONS, ZONES, Case, broken, changed, cloud_of, resource

ROOT = Path(__file__).parents[2]
UNKNOWN = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"

OF_SPECS = {"etcd-in-zones", "etcd-events-apart", "etcd-backed-up", "etcd-iops"}
"""Rules that test_etcd.py tries."""
ELSEWHERE = {
    ("secrets-encrypted", "azure"): "Key Vault offers no choice",
    ("balancers-private", "azure"): "a frontend's address is of addresses-private",
    ("stores-closed", "aws"): "endpoints are the service's",
    ("stores-closed", "gcp"): "endpoints are the service's",
    ("nobody-unnamed", "azure"): "roles are given to principals, and everybody is none",
    ("names-private", "azure"): "private and public zones are types of their own",
    ("no-wildcards", "gcp"): "permissions have none",
    ("own-identities", "aws"): "an instance has no identity but its profile's",
    ("own-identities", "azure"): "a machine has no identity but those it is given",
}


@pytest.fixture(scope="session")
def lemur(build: Callable[..., Cluster]) -> dict[str, Cluster]:
    """Cloud -> a cluster of this name there."""
    return {
        cloud: build({"name": "lemur", "control_plane": {"cloud": cloud, "region": region, "zones": ZONES[cloud]}})
        for cloud, region in REGIONS.items()
    }


def names(case: Case) -> str:
    return f"{case.rule}-{case.kept[-1].type.rpartition(':')[2]}"


def home(case: Case) -> str:
    return next(cloud_of(one) for one in case.kept if cloud_of(one) in REGIONS)


@pytest.mark.parametrize("case", CASES, ids=names)
def test_what_keeps_a_rule_is_let_pass_and_each_change_for_the_worse_is_found(
    lemur: dict[str, Cluster], case: Case
) -> None:
    cluster = lemur[home(case)]
    assert broken(case.rule, cluster, case.kept) == []
    for wrong in case.wrong:
        found = broken(case.rule, cluster, (*case.kept[:-1], changed(case.kept[-1], wrong)))
        assert found, wrong
        assert {violation.rule for violation in found} == {case.rule}
        assert all(violation.message and violation.way_out for violation in found)


@pytest.mark.parametrize("hidden", [SECRET, UNKNOWN])
@pytest.mark.parametrize("case", [case for case in CASES if not case.rule.startswith("user-data")], ids=names)
def test_a_value_that_nobody_can_look_at_breaks_no_rule(lemur: dict[str, Cluster], case: Case, hidden: str) -> None:
    for wrong in case.wrong:
        veiled = changed(case.kept[-1], {path: hidden for path in wrong})
        assert broken(case.rule, lemur[home(case)], (*case.kept[:-1], veiled)) == [], wrong


def test_every_rule_is_tried_in_every_cloud_that_it_can_be_broken_in() -> None:
    tried = {(case.rule, home(case)) for case in CASES}
    of_data = {("data-protected", cloud_of(resource(type_))) for type_ in STORES}
    wanted = {(rule.id, cloud) for rule in policies.RULES if rule.id not in OF_SPECS for cloud in REGIONS}
    assert wanted - tried - of_data == set(ELSEWHERE)


def test_rules_have_ids_of_their_own_and_say_what_they_want() -> None:
    ids = [rule.id for rule in policies.RULES]
    assert len(set(ids)) == len(ids)
    assert [rule.id for rule in policies.RULES if not rule.says.endswith(".")] == []
    assert [rule.id for rule in policies.RULES if rule.because and not rule.because.endswith(".")] == []


def test_an_empty_account_breaks_no_rule_over_resources(lemur: dict[str, Cluster]) -> None:
    for cluster in lemur.values():
        assert {violation.rule for violation in policies.check(cluster, ())} <= OF_SPECS


def test_the_list_of_policies_is_current() -> None:
    path = ROOT / "docs" / "reference" / "policies.md"
    text = reference(policies.BY_SUBJECT)
    if os.environ.get("MENAGERIE_UPDATE_GOLDEN"):
        path.write_text(text)
    assert path.read_text() == text, "run `make golden`"


def test_the_list_of_policies_has_a_row_for_every_rule() -> None:
    rows = re.findall(r"^\| `([\w-]+)` \|", reference(policies.BY_SUBJECT), re.MULTILINE)
    assert rows == [rule.id for rule in policies.RULES]


def takes_tags(token: str) -> bool:
    """By the text of its class in the SDK, which would take a minute to import."""
    package, module, name = token.split(":")
    found = find_spec(f"pulumi_{package.replace('-', '_')}")
    assert found and found.submodule_search_locations
    folder = Path(found.submodule_search_locations[0]) / module.partition("/")[0]
    file = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()
    text = (folder / f"{file}.py").read_text()
    given = text[text.index("def _internal_init") :]
    word = "labels" if package == "gcp" else "tags"
    return f" {word}:" in given[: given.index("__props__=None")]


def test_every_type_that_takes_tags_must_have_them() -> None:
    known = {type_.token for cloud in CLOUDS.values() for type_ in cloud.types.values()}
    # Tags of a scaling group are written in a way of their own; objects are what is in a bucket, not what is paid for.
    wanted = {token for token in known if takes_tags(token)} - {"aws:autoscaling/group:Group"}
    assert wanted - TAGGED == set()
