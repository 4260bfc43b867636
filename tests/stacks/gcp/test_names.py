"""Names within Google's limits, and missing credentials before `up`."""

from __future__ import annotations

import re

import pytest

from stacks.gcp import credentials, tags

NAMES = ["ibis", "9lives", "a" * 63, "google-of-apes", "goog", "x-" * 31 + "x"]
RFC_1035 = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")


@pytest.fixture(params=NAMES)
def cluster(request, build):
    return build({"name": request.param})


@pytest.mark.parametrize(
    ("make", "longest"),
    [(tags.named, 63), (tags.generated, 55), (tags.base_name, 58), (tags.account_id, 30)],
)
@pytest.mark.parametrize(
    "part", ["api", "etcd-events-1", "a-part-that-is-much-too-long-for-any-name-in-the-whole-cloud"]
)
def test_names_fit_and_start_with_a_letter(cluster, make, longest, part):
    name = make(cluster, part)
    assert RFC_1035.fullmatch(name)
    assert len(name) <= longest


def test_an_endpoints_name_has_only_letters_and_digits(cluster):
    assert re.fullmatch(r"[a-z][a-z0-9]{0,19}", tags.endpoint_name(cluster))


def test_google_accepts_a_buckets_name(cluster):
    name = tags.bucket_name(cluster.name, "artefacts", "apes-prod")
    assert re.fullmatch(r"[a-z0-9][-a-z0-9]{1,61}[a-z0-9]", name)
    assert not name.startswith("goog")
    assert "google" not in name


def test_google_accepts_a_roles_id(cluster):
    assert re.fullmatch(r"[a-zA-Z0-9_.]{3,64}", tags.role_id(cluster.name, "join_token_writer"))


def test_clusters_with_a_common_prefix_share_no_name(build):
    first, second = (build({"name": "a" * 62 + letter}) for letter in "bc")
    for make in (tags.named, tags.generated, tags.base_name, tags.account_id):
        assert make(first, "etcd-main-1") != make(second, "etcd-main-1")
    assert tags.endpoint_name(first) != tags.endpoint_name(second)
    assert tags.role_id(first.name, "writer") != tags.role_id(second.name, "writer")
    assert tags.bucket_name(first.name, "logs", "p") != tags.bucket_name(second.name, "logs", "p")


@pytest.fixture
def elsewhere(tmp_path):
    """The file with the product name of a machine that is not Google's."""
    (tmp_path / "product").write_text("KVM\n")
    return tmp_path / "product"


@pytest.mark.parametrize(
    ("environment", "words"),
    [
        ({}, ["no project is configured: set GOOGLE_PROJECT", "no credentials: run gcloud auth"]),
        ({"GOOGLE_OAUTH_ACCESS_TOKEN": "t"}, ["no project"]),
        ({"GOOGLE_CLOUD_PROJECT": "apes"}, ["no credentials"]),
        (
            {"GOOGLE_PROJECT": "apes", "GOOGLE_APPLICATION_CREDENTIALS": "/nowhere"},
            ["names /nowhere, which does not exist"],
        ),
        (
            {"GOOGLE_PROJECT": "apes", "GOOGLE_CREDENTIALS": "/nowhere"},
            ["neither the JSON of a key nor an existing file"],
        ),
        ({"GOOGLE_PROJECT": "apes", "GOOGLE_CREDENTIALS": "{}"}, []),
    ],
)
def test_missing_credentials_are_named_with_the_way_to_get_them(environment, words, tmp_path, elsewhere):
    problems = credentials.missing({"HOME": str(tmp_path), **environment}, elsewhere)
    assert len(problems) == len(words)
    assert all(word in problem for word, problem in zip(words, problems, strict=True))


def test_a_login_with_gcloud_or_a_machine_of_google_is_sufficient(tmp_path, elsewhere):
    environment = {"GOOGLE_PROJECT": "apes", "HOME": str(tmp_path)}
    folder = tmp_path / ".config" / "gcloud"
    folder.mkdir(parents=True)
    assert credentials.missing(environment, elsewhere)
    (folder / "application_default_credentials.json").write_text("{}")
    assert credentials.missing(environment, elsewhere) == []
    elsewhere.write_text("Google Compute Engine\n")
    assert credentials.missing({"GOOGLE_PROJECT": "apes", "HOME": "/nowhere"}, elsewhere) == []
