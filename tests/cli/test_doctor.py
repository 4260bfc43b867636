"""`doctor` on the command line: its lines, its document, and its exit code."""

from __future__ import annotations

import json

import pytest

from operations.doctor.model import Answer, Question, Report, State, ok, wrong
from operations.doctor.run import ask
from tests.cli.terminal import Menagerie


@pytest.fixture
def examined(monkeypatch: pytest.MonkeyPatch) -> list[Answer]:
    """Let the command find these answers."""
    items: list[Answer] = []

    def answers(*_: object) -> Report:
        return Report("small", "aws", tuple(ask([Question("group", "one", lambda: items)], lambda _: None)))

    monkeypatch.setattr("cli.actions.doctor.examine", answers)
    return items


@pytest.mark.parametrize(
    ("answers", "code"),
    [
        ([ok("fine")], 0),
        ([ok("fine"), wrong("bad", "mend it --now")], 1),
        ([Answer(State.UNKNOWN, "silence")], 4),
        ([Answer(State.NOT_ASKED, "nobody"), ok("fine")], 4),
        ([Answer(State.UNKNOWN, "silence"), wrong("bad")], 1),
    ],
)
def test_the_exit_code_is_0_only_if_all_is_ok(
    menagerie: Menagerie, examined: list[Answer], answers: list[Answer], code: int
) -> None:
    examined += answers
    ran = menagerie("doctor", "examples/aws-small", "--json")
    assert ran.code == code
    document = json.loads(ran.out)
    assert document["ok"] is (code == 0)
    assert [row["state"] for row in document["questions"]] == [answer.state.value for answer in answers]


def test_a_row_ends_with_what_is_needed_and_the_commands_are_below_it(
    menagerie: Menagerie, examined: list[Answer]
) -> None:
    examined += [wrong("7 left", "ask --for more", needed="8 vCPUs"), ok("fine", about="part")]
    ran = menagerie("doctor", "examples/aws-small")
    lines = ran.out.splitlines()
    assert lines[0].split() == ["group", "one", "wrong", "7", "left;", "needed:", "8", "vCPUs"]
    assert lines[1].strip() == "→ ask --for more"
    assert lines[-1] == "small  aws; 1 ok, 1 wrong; nothing was changed"
