"""Every rule with resources that comply and changes that break it, and the list of rules for people."""

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
"""Rules that test_etcd.py tests."""
ELSEWHERE = {
    ("secrets-encrypted", "azure"): "Key Vault offers no choice",
    ("balancers-private", "azure"): "a frontend's address is of addresses-private",
    ("stores-closed", "aws"): "endpoints are the service's",
    ("stores-closed", "gcp"): "endpoints are the service's",
    ("nobody-unnamed", "azure"): "roles are granted to principals, and everybody is not one",
    ("names-private", "azure"): "private and public zones are different types",
    ("no-wildcards", "gcp"): "permissions have no wildcards",
    ("own-identities", "aws"): "an instance's only identity is its profile's",
    ("own-identities", "azure"): "a machine has only the identities assigned to it",
}


@pytest.fixture(scope="session")
def lemur(build: Callable[..., Cluster]) -> dict[str, Cluster]:
    """Cloud -> a cluster with this name there."""
    return {
        cloud: build({"name": "lemur", "control_plane": {"cloud": cloud, "region": region, "zones": ZONES[cloud]}})
        for cloud, region in REGIONS.items()
    }


def names(case: Case) -> str:
    return f"{case.rule}-{case.kept[-1].type.rpartition(':')[2]}"


def home(case: Case) -> str:
    return next(cloud_of(kept) for kept in case.kept if cloud_of(kept) in REGIONS)


@pytest.mark.parametrize("case", CASES, ids=names)
def test_compliant_resources_pass_and_each_bad_change_is_a_violation(lemur: dict[str, Cluster], case: Case) -> None:
    cluster = lemur[home(case)]
    assert broken(case.rule, cluster, case.kept) == []
    for wrong in case.wrong:
        violations = broken(case.rule, cluster, (*case.kept[:-1], changed(case.kept[-1], wrong)))
        assert violations, wrong
        assert {violation.rule for violation in violations} == {case.rule}
        assert all(violation.message and violation.way_out for violation in violations)


@pytest.mark.parametrize("hidden", [SECRET, UNKNOWN])
@pytest.mark.parametrize("case", [case for case in CASES if not case.rule.startswith("user-data")], ids=names)
def test_a_hidden_value_breaks_no_rule(lemur: dict[str, Cluster], case: Case, hidden: str) -> None:
    for wrong in case.wrong:
        hiding = changed(case.kept[-1], {path: hidden for path in wrong})
        assert broken(case.rule, lemur[home(case)], (*case.kept[:-1], hiding)) == [], wrong


def test_every_rule_is_tested_in_every_cloud_where_it_can_be_broken() -> None:
    tested = {(case.rule, home(case)) for case in CASES}
    of_data = {("data-protected", cloud_of(resource(type_))) for type_ in STORES}
    expected = {(rule.id, cloud) for rule in policies.RULES if rule.id not in OF_SPECS for cloud in REGIONS}
    assert expected - tested - of_data == set(ELSEWHERE)


def test_rules_have_unique_ids_and_end_their_sentences() -> None:
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
    """Whether a type takes tags, from the text of its class in the SDK; importing that would take a minute."""
    package, module, name = token.split(":")
    spec = find_spec(f"pulumi_{package.replace('-', '_')}")
    assert spec and spec.submodule_search_locations
    folder = Path(spec.submodule_search_locations[0]) / module.partition("/")[0]
    file = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()
    text = (folder / f"{file}.py").read_text()
    parameters = text[text.index("def _internal_init") :]
    word = "labels" if package == "gcp" else "tags"
    return f" {word}:" in parameters[: parameters.index("__props__=None")]


def test_every_type_that_takes_tags_is_in_the_table() -> None:
    in_table = {type_.token for cloud in CLOUDS.values() for type_ in cloud.types.values()}
    # A scaling group's tags have another format; objects are the content of a bucket and not billed separately.
    expected = {token for token in in_table if takes_tags(token)} - {"aws:autoscaling/group:Group"}
    assert expected - TAGGED == set()
