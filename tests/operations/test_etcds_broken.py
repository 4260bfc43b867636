"""Members that break and do not recover automatically, with real etcds: what is reported, and what repairs them."""

from __future__ import annotations

import contextlib
import shutil
import signal
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from clients.etcd_client import EtcdError
from operations.etcds import replace, space
from operations.etcds.look import findings
from operations.record.journal import Unrecorded
from tests.bench.injections import flip
from tests.etcd.real import NEEDS_ETCD, until
from tests.operations.etcds_support import Site, quiet, silent, site

pytestmark = NEEDS_ETCD


@pytest.fixture
def here(build: Any, tmp_path: Any) -> Iterator[Site]:
    with site(build, tmp_path, running=("main",)) as made:
        yield made


def worst(here: Site) -> str:
    """Return the worst finding. A disk that is temporarily slow comes after it."""
    line = findings(here.view())[0]
    print(line)
    return line


def ended(here: Site, member: str) -> None:
    until(lambda: here.fleet.running[member].poll() is not None, f"{member} has ended")


def replaced(here: Site, member: str) -> Unrecorded:
    operation = Unrecorded()
    replace.refuse(here.view(), member, although_healthy=False)
    after = replace.replace(here.view(), member, operation, quiet, silent)
    assert all(each.healthy for each in after.members)
    return operation


def test_a_member_whose_database_was_corrupted_does_not_start_and_is_replaced_with_its_data_kept(here: Site) -> None:
    for number in range(50):
        here.put("main", f"/kept/{number}", "x" * 4000)
    here.fleet.kill("etcd-main-3")
    assert flip(here.data("main", 3) / "member/snap/db", every=2) > 20
    here.fleet.start("main", "etcd-main-3")
    ended(here, "etcd-main-3")
    line = worst(here)
    assert "2 of 3 members healthy; etcd-main-3" in line
    assert "is down (" in line and "Writes still work" in line
    assert line.endswith("Replace it: ./menagerie etcd replace lab main etcd-main-3")
    operation = replaced(here, "etcd-main-3")
    assert (here.data("main", 3) / f".menagerie/before-{operation.facts['token']}/snap/db").is_file()
    for number in (1, 2, 3):
        keys = here.ctl("main", "get", "/kept/", "--prefix", "--keys-only", only=number).stdout.split()
        assert len(keys) == 50


def test_a_removed_member_never_comes_back_with_its_old_data_and_is_reported(here: Site) -> None:
    gone = here.remove("etcd-main-3")
    ended(here, "etcd-main-3")
    here.fleet.start("main", "etcd-main-3")
    ended(here, "etcd-main-3")
    assert "removed" in worst(here)
    assert gone.id not in [each.id for each in here.etcd().client.listed()]
    replaced(here, "etcd-main-3")


@pytest.mark.parametrize("at", ["remove", "add", "join"])
def test_a_replacement_waits_for_a_leader_that_stalls(here: Site, at: str) -> None:
    view = here.view()
    leader = view.leader
    assert leader
    other = next(each.name for each in view.members if each is not leader)
    here.fleet.kill(other)
    shutil.rmtree(here.data("main", int(other[-1])) / "member")
    stalled, said = here.fleet.running[leader.name], list[str]()

    def step(name: str) -> contextlib.AbstractContextManager[None]:
        if name == at:
            stalled.send_signal(signal.SIGSTOP)
            threading.Timer(5, stalled.send_signal, [signal.SIGCONT]).start()
        return contextlib.nullcontext()

    after = replace.replace(here.view(), other, Unrecorded(), step, said.append)
    assert all(each.healthy for each in after.members)
    assert any("context deadline exceeded" in each for each in said), said


def test_a_member_killed_during_defragmentation_opens_its_data_again_and_a_second_run_finishes_the_step(
    here: Site,
) -> None:
    value = "x" * 500_000
    for number in range(150):
        assert here.fleet.etcdctl("main", "client-of-main", "put", f"/big/{number}", text=value).returncode == 0
    view, folder = here.view(), here.data("main", 3) / "member/snap"
    failures: list[EtcdError] = []

    def defragment() -> None:
        try:
            space.defragment(view, ["etcd-main-3"], Unrecorded(), quiet, silent)
        except EtcdError as error:
            failures.append(error)

    runs = threading.Thread(target=defragment)
    runs.start()
    until(lambda: any(folder.glob("db.tmp*")), "the new database is being written")
    here.fleet.kill("etcd-main-3")
    runs.join()
    assert failures
    here.fleet.start("main", "etcd-main-3")
    here.fleet.wait_until_healthy("main")
    after = space.defragment(here.view(), ["etcd-main-3"], Unrecorded(), quiet, silent)
    assert all(each.healthy for each in after.members)
    assert not list(folder.glob("db.tmp*"))
    keys = here.ctl("main", "get", "/big/", "--prefix", "--keys-only", only=3).stdout.split()
    assert len(keys) == 150
