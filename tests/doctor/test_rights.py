"""The rights of `doctor`: the documented ones are those of its questions, they only read, and its page has each question."""

from __future__ import annotations

import os
import re

import pytest

from cluster.spec import Cloud, PublicEndpoint
from operations.doctor import rights
from operations.doctor.choose import cloud_questions
from operations.doctor.local import local_questions
from operations.doctor.model import Question
from tests.doctor.support import ROOT, example

EXAMPLES = {Cloud.AWS: ("aws-small", "horus"), Cloud.AZURE: ("azure-small", "jaguar"), Cloud.GCP: ("gcp-small", "ibis")}
PUBLIC = PublicEndpoint.model_validate({"name": "api.example.org", "operators": ("192.0.2.0/24",)})
READS = re.compile(r"\w+:(Describe|Get|List|Simulate)\w+|Microsoft\.[\w./]+/read|[a-z]+(\.\w+)+\.get(FromFamily)?")


@pytest.fixture(autouse=True)
def _somewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARM_SUBSCRIPTION_ID", "a-sub")


def every(cloud: Cloud) -> list[Question]:
    """Return the questions about clusters that together have everything that questions depend on."""
    return [
        question
        for name in EXAMPLES[cloud]
        for public in (None, PUBLIC)
        for question in cloud_questions(example(name, public=public), "a-project")
    ]


@pytest.mark.parametrize("cloud", list(EXAMPLES))
def test_the_documented_rights_are_current_and_only_read(cloud: Cloud) -> None:
    file, text = ROOT / "docs" / rights.FILES[cloud], rights.document(cloud, every(cloud))
    if os.environ.get("MENAGERIE_UPDATE_GOLDEN"):
        file.write_text(text)
    assert file.read_text() == text
    assert [r for question in every(cloud) for r in question.rights if not READS.fullmatch(r)] == []


@pytest.mark.parametrize("cloud", list(EXAMPLES))
def test_the_page_has_each_question_with_its_calls_and_rights(cloud: Cloud) -> None:
    page = (ROOT / "docs/how-to/doctor.md").read_text()
    for question in [*every(cloud), *local_questions(example(EXAMPLES[cloud][0], public=PUBLIC))]:
        rows = [line for line in page.splitlines() if line.startswith(f"| {question.name} |")]
        words = {word for row in rows for word in re.findall(r"`([^`]+)`", row)}
        assert rows, question.name
        assert {*question.calls, *question.rights} - {"DNS", "HTTP HEAD", "HTTP GET"} <= words, question.name
