"""Which member makes a backup or a drill, and when."""

from __future__ import annotations

from pathlib import Path

import pytest

from etcd.host.menagerie_etcd import backup, drill, members
from etcd.host.menagerie_etcd.members import Health
from etcd.host.menagerie_etcd.repository import Snapshot
from etcd.host.menagerie_etcd.settings import Settings

SETTINGS = Settings("apes", "main", "m1", {}, every=900, drill=86_400, keep=24, pki=Path("/pki"))


def test_a_disk_without_room_for_a_drill_is_reported_before_anything_is_done(tmp_path):
    with (
        pytest.raises(
            backup.BackupError, match="MiB are free in .*, and a drill takes about 1152921504606846976; nothing"
        ),
        backup.working_folder(tmp_path / "work", "a drill", 2**80),
    ):
        pass
    assert not (tmp_path / "work").exists()


def _health(*words: str) -> list[Health]:
    return [
        Health(f"m{number}", "leads" in word, "learns" in word, ["NOSPACE"] if "ill" in word else [])
        for number, word in enumerate(words, 1)
    ]


@pytest.mark.parametrize(
    ("members_health", "turn"),
    [
        (("leads", "follows", "follows"), "m2"),
        (("follows", "leads", "follows"), "m1"),
        (("ill", "leads", "follows"), "m3"),
        (("ill", "leads ill", "ill"), "m1"),
        (("learns", "leads"), "m2"),
        (("leads",), "m1"),
        (("learns",), ""),
        ((), ""),
    ],
)
def test_the_first_healthy_follower_has_the_turn(members_health, turn):
    assert members.in_turn(_health(*members_health)) == turn


def _drilled(*rows: tuple[float, str]) -> list[Snapshot]:
    return [Snapshot("s", time_, {"kind": "drill", "ok": ok}) for time_, ok in rows]


@pytest.mark.parametrize(
    ("drills", "wait"),
    [
        ([], 0),
        ([(99_000, "yes")], 99_000 + 86_400 - 450 - 100_000),
        ([(13_000, "yes")], 0),
        ([(99_000, "no")], 99_000 + 10_800 - 450 - 100_000),
        ([(99_000, "no"), (98_000, "yes")], 98_000 + 86_400 - 450 - 100_000),
        ([(89_000, "no"), (1_000, "yes")], 0),
    ],
)
def test_a_drill_is_due_after_the_last_that_passed_and_sooner_after_a_failed_one(drills, wait):
    assert drill.due_in(SETTINGS, _drilled(*drills), 100_000) == wait
