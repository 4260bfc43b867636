"""Names within Google's limits, and what is missing before `up` can begin."""

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
def test_names_fit_and_begin_with_a_letter(cluster, make, longest, part):
    name = make(cluster, part)
    assert RFC_1035.fullmatch(name)
    assert len(name) <= longest


def test_an_endpoint_s_name_is_letters_and_digits(cluster):
    assert re.fullmatch(r"[a-z][a-z0-9]{0,19}", tags.endpoint_name(cluster))


def test_a_bucket_s_name_is_one_that_google_takes(cluster):
    name = tags.bucket_name(cluster, "artefacts", "apes-prod")
    assert re.fullmatch(r"[a-z0-9][-a-z0-9]{1,61}[a-z0-9]", name)
    assert not name.startswith("goog")
    assert "google" not in name


def test_a_role_s_id_is_one_that_google_takes(cluster):
    assert re.fullmatch(r"[a-zA-Z0-9_.]{3,64}", tags.role_id(cluster.name, "join_token_writer"))


def test_clusters_with_the_same_beginning_share_no_name(build):
    one, other = (build({"name": "a" * 62 + letter}) for letter in "bc")
    for make in (tags.named, tags.generated, tags.base_name, tags.account_id):
        assert make(one, "etcd-main-1") != make(other, "etcd-main-1")
    assert tags.endpoint_name(one) != tags.endpoint_name(other)
    assert tags.role_id(one.name, "writer") != tags.role_id(other.name, "writer")
    assert tags.bucket_name(one, "logs", "p") != tags.bucket_name(other, "logs", "p")


@pytest.fixture
def elsewhere(tmp_path):
    """The product's name of a machine that is not Google's."""
    (tmp_path / "product").write_text("KVM\n")
    return tmp_path / "product"


@pytest.mark.parametrize(
    ("environment", "words"),
    [
        ({}, ["no project: set GOOGLE_PROJECT", "no credentials: run gcloud auth"]),
        ({"GOOGLE_OAUTH_ACCESS_TOKEN": "t"}, ["no project"]),
        ({"GOOGLE_CLOUD_PROJECT": "apes"}, ["no credentials"]),
        ({"GOOGLE_PROJECT": "apes", "GOOGLE_APPLICATION_CREDENTIALS": "/nowhere"}, ["names /nowhere, and there is no"]),
        ({"GOOGLE_PROJECT": "apes", "GOOGLE_CREDENTIALS": "/nowhere"}, ["neither the JSON of a key nor a file"]),
        ({"GOOGLE_PROJECT": "apes", "GOOGLE_CREDENTIALS": "{}"}, []),
    ],
)
def test_missing_credentials_are_named_with_the_way_to_get_them(environment, words, tmp_path, elsewhere):
    found = credentials.missing({"HOME": str(tmp_path), **environment}, elsewhere)
    assert len(found) == len(words)
    assert all(word in problem for word, problem in zip(words, found, strict=True))


def test_who_logged_in_with_gcloud_or_runs_on_google_misses_nothing(tmp_path, elsewhere):
    environment = {"GOOGLE_PROJECT": "apes", "HOME": str(tmp_path)}
    folder = tmp_path / ".config" / "gcloud"
    folder.mkdir(parents=True)
    assert credentials.missing(environment, elsewhere)
    (folder / "application_default_credentials.json").write_text("{}")
    assert credentials.missing(environment, elsewhere) == []
    elsewhere.write_text("Google Compute Engine\n")
    assert credentials.missing({"GOOGLE_PROJECT": "apes", "HOME": "/nowhere"}, elsewhere) == []
