"""A controller's loop without a cluster: when it acts, its log, and its health."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import urllib3
from kubernetes import client
from kubernetes.client.exceptions import ApiException

from clients.kube import Kube
from clients.lease import HeldError, Lease, LostTheLockError
from controllers.program import loop as module
from controllers.program.access import PodAccess
from controllers.program.loop import PREFIX, Loop
from controllers.program.work import RoundOutcome
from controllers.tenancy.directory.model import directory_error
from tests.bench.prometheus import total

ROOT = Path(__file__).resolve().parents[2]


class End(BaseException):
    """Ends the loop of a test."""


class FakeLease(Lease):
    """A Lease that others hold for a number of attempts, and that is then ours."""

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
    """Work whose rounds return the given outcomes or raise the given errors, and then end the loop."""

    def __init__(self, *ends: RoundOutcome | Exception) -> None:
        self.ends, self.acted = list(ends), 0

    def once(self, progress: Callable[[], None]) -> RoundOutcome:
        if not self.ends:
            raise End
        end = self.ends.pop(0)
        self.acted += 1
        if isinstance(end, Exception):
            raise end
        return end


@pytest.fixture
def said(caplog: pytest.LogCaptureFixture) -> Callable[[], list[tuple[int, str]]]:
    """Return a function that returns the level and the message of each event that the program has logged."""
    caplog.set_level(logging.INFO, "controllers.program")
    return lambda: [(record.levelno, record.getMessage()) for record in caplog.records]


Said = Callable[[], list[tuple[int, str]]]
ACTS = (logging.INFO, "acquired Lease menagerie-tenancy-sync: this pod acts now")


def run(work: Rounds, lease: Lease) -> Loop:
    loop = Loop(work, lease, 1, clock=lambda: 1_700_000_000.0, pause=lambda _: None)
    with pytest.raises(End):
        loop.run()
    return loop


def metrics(loop: Loop) -> str:
    return loop.pages()["/metrics"]().text


def test_it_logs_standby_once_and_then_acts(said: Said) -> None:
    work = Rounds(RoundOutcome(changes=2))
    run(work, FakeLease(others=3))
    assert said() == [(logging.INFO, "on standby: pod-b acts"), ACTS]
    assert work.acted == 1


def test_a_passing_problem_and_its_end_are_logged_once(said: Said) -> None:
    down = directory_error("ldaps://x", ["no answer"])
    loop = run(Rounds(down, directory_error("ldaps://x", ["no answer"]), RoundOutcome(), RoundOutcome()), FakeLease())
    assert said()[1:] == [
        (logging.ERROR, "ldaps://x: no answer"),
        (logging.INFO, "recovered: no problems in the last round"),
    ]
    assert total(metrics(loop), f"{PREFIX}rounds_total", end="failed") == 2
    assert total(metrics(loop), f"{PREFIX}rounds_total", end="done") == 2


def test_a_refused_round_is_counted_and_is_no_success(said: Said) -> None:
    loop = run(
        Rounds(RoundOutcome(changes=1), RoundOutcome(refused=("2 of 3 are missing",), sizes={"people": 1})), FakeLease()
    )
    text = metrics(loop)
    assert (logging.ERROR, "refused: 2 of 3 are missing") in said()
    assert total(text, f"{PREFIX}rounds_total", end="refused") == 1
    assert total(text, f"{PREFIX}last_success_timestamp_seconds") == 1_700_000_000
    assert total(text, f"{PREFIX}size", of="people") == 1


def test_an_unexpected_error_ends_the_process() -> None:
    loop = Loop(Rounds(ZeroDivisionError()), FakeLease(), 1, pause=lambda _: None)
    with pytest.raises(ZeroDivisionError):
        loop.run()


@pytest.mark.parametrize(("took_s", "rest_s"), [(0, 60), (25, 35), (59, 15), (400, 15)])
def test_rounds_begin_so_many_seconds_apart_and_never_without_a_pause(
    monkeypatch: pytest.MonkeyPatch, took_s: float, rest_s: float
) -> None:
    now, pauses = [1000.0], list[float]()
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])

    class Slow(Rounds):
        def once(self, progress: Callable[[], None]) -> RoundOutcome:
            now[0] += took_s
            return super().once(progress)

    with pytest.raises(End):
        Loop(Slow(RoundOutcome()), FakeLease(), 60, pause=pauses.append).run()
    assert pauses == [rest_s]


def test_a_conflict_is_a_warning_and_no_failure(said: Said) -> None:
    run(Rounds(RoundOutcome(undecided=("robotics and vision want r07",))), FakeLease())
    assert said()[1:] == [(logging.WARNING, "needs a decision: robotics and vision want r07")]


def test_a_process_that_loses_the_lease_goes_to_standby(said: Said) -> None:
    lease = FakeLease()

    class Losing(Rounds):
        def once(self, progress: Callable[[], None]) -> RoundOutcome:
            if self.acted:
                raise End
            self.acted, lease._is_held, lease.others = 1, False, 1
            return RoundOutcome()

    run(Losing(), lease)
    assert said()[1] == (logging.WARNING, "lost Lease menagerie-tenancy-sync: this pod no longer acts")


def test_without_the_lease_it_is_ready_only_while_the_api_answers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loop = Loop(Rounds(), FakeLease(), 1, pause=lambda _: None)
    pages = loop.pages()
    assert (pages["/readyz"]().status, pages["/healthz"]().status) == (503, 200)
    loop._stand_by(HeldError("x acts on this cluster"))
    assert pages["/readyz"]().status == 200
    at = module.time.monotonic()
    monkeypatch.setattr(module.time, "monotonic", lambda: at + module.FRESH_S + 1)
    assert (pages["/readyz"]().status, pages["/healthz"]().status) == (503, 200)
    monkeypatch.setattr(module.time, "monotonic", lambda: at + module.STUCK_S + 1)
    assert pages["/healthz"]().status == 503


def test_an_api_that_does_not_answer_is_retried(said: Said) -> None:
    class Silent(FakeLease):
        @contextmanager
        def holding(
            self, wait: Callable[[HeldError], None] | None = None, report: Callable[[str], None] = lambda _: None
        ) -> Iterator[None]:
            if self.others:
                self.others -= 1
                raise ApiException(status=503, reason="Service Unavailable")
            with super().holding(wait):
                yield

    run(Rounds(RoundOutcome()), Silent(others=2))
    level, text = said()[0]
    assert text.startswith("can't read or update the Lease: the API server returned 503 Service Unavailable")
    assert (level, said()[-1]) == (logging.WARNING, ACTS)


def test_without_the_lease_reads_are_allowed_and_writes_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[str] = []

    def answer(pool: object, method: str, url: str, **_: object) -> urllib3.HTTPResponse:
        sent.append(method)
        return urllib3.HTTPResponse(b"{}", {"content-type": "application/json"}, 200)

    monkeypatch.setattr("kubernetes.config.load_incluster_config", lambda _: None)
    monkeypatch.setattr(urllib3.PoolManager, "request", answer)

    def lost() -> None:
        raise LostTheLockError("lost")

    api = PodAccess(lost).api()
    core, kube = client.CoreV1Api(api), Kube(api)
    assert (core.read_namespace("x").spec, kube.read("Namespace", "x")) == (None, {})
    key, thing = ("Namespace", "", "x"), {"kind": "Namespace", "metadata": {"name": "x"}}
    for change in (
        lambda: core.create_namespace({}),
        lambda: core.replace_namespace("x", {}),
        lambda: core.patch_namespace("x", {}),
        lambda: core.delete_namespace("x"),
        lambda: kube.apply(thing),
        lambda: kube.patch(key, {}),
        lambda: kube.delete(key),
    ):
        with pytest.raises(LostTheLockError):
            change()
    Kube(PodAccess().api()).patch(key, {})
    assert sent == ["GET", "GET", "PATCH"]


def test_every_metric_is_documented_for_operators() -> None:
    loop = run(Rounds(RoundOutcome(sizes={"people": 1})), FakeLease())
    served = {line.split("{")[0].split(" ")[0] for line in metrics(loop).splitlines() if not line.startswith("#")}
    assert served == set(re.findall(rf"`({PREFIX}\w+)`", (ROOT / "docs" / "how-to" / "controllers.md").read_text()))
