"""Asks all questions in parallel. One that fails, is refused or does not end becomes a row, and the others go on."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterable, Sequence

from clients.clouds import CallError, LoginError
from cluster.errors import MenagerieError
from operations.doctor.model import Answer, AnswerRow, Question, State, unknown

PATIENCE_S = 90.0
"""Time for all questions together. One request takes at most a minute with its repetitions (`clients.clouds`)."""
_AT_ONCE = 8
"""Questions that are asked at the same time: more would only be throttled."""
Tell = Callable[[str], None]


def ask(questions: Sequence[Question], tell: Tell, patience_s: float = PATIENCE_S) -> list[AnswerRow]:
    """Return the rows of all questions, in the order of the questions. tell: gets progress."""
    answers: queue.Queue[tuple[int, tuple[Answer, ...]]] = queue.Queue()
    places = threading.Semaphore(_AT_ONCE)

    def work(number: int, question: Question) -> None:
        with places:
            answers.put((number, tuple(_answered(question))))

    for number, question in enumerate(questions):
        # Daemons: a request that hangs must not keep the command from ending.
        threading.Thread(target=work, args=(number, question), daemon=True).start()
    answered = _collected(answers, questions, tell, patience_s)
    late = (unknown(f"no answer within {patience_s:.0f} s"),)
    return [row for number, question in enumerate(questions) for row in rows_of(question, answered.get(number, late))]


def not_asked(questions: Iterable[Question], why: str) -> list[AnswerRow]:
    """Return rows for questions that need what is missing."""
    return [AnswerRow(each.group, each.name, Answer(State.NOT_ASKED, why)) for each in questions]


def rows_of(question: Question, answers: Iterable[Answer]) -> list[AnswerRow]:
    return [
        AnswerRow(question.group, f"{question.name}: {answer.about}" if answer.about else question.name, answer)
        for answer in answers
    ]


def _collected(
    answers: queue.Queue[tuple[int, tuple[Answer, ...]]], questions: Sequence[Question], tell: Tell, patience_s: float
) -> dict[int, tuple[Answer, ...]]:
    """Return number of the question -> its answers, for those that answered in time."""
    answered: dict[int, tuple[Answer, ...]] = {}
    end = time.monotonic() + patience_s
    while len(answered) < len(questions):
        left = [question.name for number, question in enumerate(questions) if number not in answered]
        tell(f"{len(answered)} of {len(questions)} answered; waiting for {', '.join(left[:3])}")
        try:
            number, of_question = answers.get(timeout=max(end - time.monotonic(), 0))
        except queue.Empty:
            break
        answered[number] = of_question
    return answered


def _answered(question: Question) -> list[Answer]:
    """Return the answers; an error becomes one that is unknown, with the rights that the question needs if it was refused."""
    try:
        return list(question.ask())
    except CallError as error:
        lacks = f"; it needs {', '.join(question.rights)}" if error.refused and question.rights else ""
        return [unknown(f"{error}{lacks}")]
    except (LoginError, MenagerieError) as error:
        return [unknown(str(error))]
    except Exception as error:  # noqa: BLE001 - a question that fails must not hide the others
        return [unknown(f"{type(error).__name__}: {error}")]
