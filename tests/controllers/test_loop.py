"""A controller's loop without a cluster: when it acts, what it says, how well it says it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from kubernetes import client
from kubernetes.client.exceptions import ApiException

from clients.lease import HeldError, Lease, LostTheLockError
from controllers.program import loop as module
from controllers.program.access import PodAccess
from controllers.program.loop import MEANINGS, PREFIX, Loop
from controllers.program.work import Outcome
from controllers.tenancy.directory.model import unbelieved

ROOT = Path(__file__).resolve().parents[2]


class End(BaseException):
    """Of a test."""


class Given(Lease):
    """A Lease that is ours after so many times of asking, and for so many questions."""

    def __init__(self, others: int = 0, rounds: int = 100) -> None:
        self.others, self.rounds, self._is_held = others, rounds, False
        self._name, self._lasts_s = "menagerie-tenancy-sync", 30

    def held(self) -> bool:
        return self._is_held

    @contextmanager
    def holding(
        self, wait: Callable[[HeldError], None] | None = None, report: Callable[[str], None] = lambda _: None
    ) -> Iterator[None]:
        while self.others:
            self.others -= 1
            assert wait
            wait(HeldError("pod-b acts on this cluster as menagerie-tenancy-sync; end it first"))
        self._is_held = True
        try:
            yield
        finally:
            self._is_held = False


class Rounds:
    """What each round comes to, or raises; the lease is lost where the test says so."""

    def __init__(self, *ends: Outcome | Exception) -> None:
        self.ends, self.acted = list(ends), 0

    def once(self, say: Callable[[str], None]) -> Outcome:
        if not self.ends:
            raise End
        end = self.ends.pop(0)
        self.acted += 1
        if isinstance(end, Exception):
            raise end
        return end


def run(work: Rounds, lease: Lease) -> tuple[Loop, list[str]]:
    said: list[str] = []
    made = Loop(work, lease, 1, said.append, clock=lambda: 1_700_000_000.0, pause=lambda _: None)
    with pytest.raises(End):
        made.run()
    return made, said


def metrics(made: Loop) -> str:
    return made.pages()["/metrics"]().text


def test_it_stands_by_says_so_once_and_then_acts() -> None:
    work = Rounds(Outcome(made=2))
    _, said = run(work, Given(others=3))
    assert said == ["stands by: pod-b acts", "holds menagerie-tenancy-sync: acts from now on"]
    assert work.acted == 1


def test_what_passes_is_said_once_and_its_end_too() -> None:
    down = unbelieved("ldaps://x", ["no answer"])
    made, said = run(Rounds(down, unbelieved("ldaps://x", ["no answer"]), Outcome(), Outcome()), Given())
    assert said[1:] == ["ldaps://x: no answer", "in step again"]
    assert f'{PREFIX}rounds_total{{end="failed"}} 2\n' in metrics(made)
    assert f'{PREFIX}rounds_total{{end="done"}} 2\n' in metrics(made)


def test_a_round_that_was_refused_is_counted_and_no_success() -> None:
    made, said = run(Rounds(Outcome(made=1), Outcome(refused=("2 of 3 have gone",), sizes={"people": 1})), Given())
    text = metrics(made)
    assert "refused: 2 of 3 have gone" in said
    assert f'{PREFIX}rounds_total{{end="refused"}} 1\n' in text
    assert f"{PREFIX}last_success_timestamp_seconds 1700000000\n" in text
    assert f'{PREFIX}size{{of="people"}} 1\n' in text


def test_what_nobody_foresaw_ends_the_process() -> None:
    made = Loop(Rounds(ZeroDivisionError()), Given(), 1, str, pause=lambda _: None)
    with pytest.raises(ZeroDivisionError):
        made.run()


def test_who_loses_the_lease_stands_by_again() -> None:
    lease = Given()

    class Losing(Rounds):
        def once(self, say: Callable[[str], None]) -> Outcome:
            if self.acted:
                raise End
            self.acted, lease._is_held, lease.others = 1, False, 1
            return Outcome()

    _, said = run(Losing(), lease)
    assert said[1] == "lost menagerie-tenancy-sync: acts no more"


def test_before_and_after_it_holds_the_lease_it_is_ready_only_while_the_api_answers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = Loop(Rounds(), Given(), 1, str, pause=lambda _: None)
    pages = made.pages()
    assert (pages["/readyz"]().status, pages["/healthz"]().status) == (503, 200)
    made._stand_by(HeldError("x acts on this cluster"))
    assert pages["/readyz"]().status == 200
    at = module.time.monotonic()
    monkeypatch.setattr(module.time, "monotonic", lambda: at + module.FRESH_S + 1)
    assert (pages["/readyz"]().status, pages["/healthz"]().status) == (503, 200)
    monkeypatch.setattr(module.time, "monotonic", lambda: at + module.STUCK_S + 1)
    assert pages["/healthz"]().status == 503


def test_an_api_that_does_not_answer_is_asked_again() -> None:
    class Silent(Given):
        @contextmanager
        def holding(
            self, wait: Callable[[HeldError], None] | None = None, report: Callable[[str], None] = lambda _: None
        ) -> Iterator[None]:
            if self.others:
                self.others -= 1
                raise ApiException(status=503, reason="Service Unavailable")
            with super().holding(wait):
                yield

    _, said = run(Rounds(Outcome()), Silent(others=2))
    assert said[0].startswith("the Lease can't be asked for: the API server answers 503 Service Unavailable")
    assert said[-1] == "holds menagerie-tenancy-sync: acts from now on"


def test_without_the_lease_nothing_is_written_and_all_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr("kubernetes.config.load_incluster_config", lambda _: None)
    monkeypatch.setattr(client.ApiClient, "request", lambda self, method, *_, **__: asked.append(method))

    def lost() -> None:
        raise LostTheLockError("lost")

    api = PodAccess(lost).api()
    api.request("GET", "https://x")
    for method in ("POST", "PUT", "PATCH", "DELETE"):
        with pytest.raises(LostTheLockError):
            api.request(method, "https://x")
    PodAccess().api().request("PATCH", "https://x")
    assert asked == ["GET", "PATCH"]


def test_every_metric_is_in_the_page_for_operators() -> None:
    page = (ROOT / "docs" / "how-to" / "controllers.md").read_text()
    assert [name for name in MEANINGS if f"`{PREFIX}{name}`" not in page] == []
