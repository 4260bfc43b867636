"""How installations run, end and resume, with BMCs that obey at once and short waits."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from ipaddress import IPv4Address
from pathlib import Path
from typing import cast

import pytest
from obstore.store import MemoryStore

from cluster.shared import NewerDataError
from operations.provisioning.bmc import Bmc, BootTarget
from operations.provisioning.install import Installation, Waits, _StoppedError, scanned_key
from operations.provisioning.journal import InstallJournal, InstallRecord, InstallStage
from operations.provisioning.machines import SiteMachine, machines
from operations.provisioning.redfish import BmcError, BmcErrorKind
from operations.provisioning.reports import Reports
from operations.record.store import RecordStore, RecordStoreError
from tests import debian
from tests.ports import free_port
from tests.provisioning.support import KEYS, cluster
from tests.waiting import until

ALL = machines(cluster())
ONE, TWO, THREE = ALL
QUICK = Waits(power=0.2, install=0.4, first_boot=0.2, poll=0.01)


class Obedient:
    """A BMC that does and records what it is asked. ends: the machine turns off after this many reads."""

    def __init__(self, machine: SiteMachine, reports: Reports | None = None, ends: int = 2) -> None:
        self.machine = machine
        self.reports = reports
        self.ends = ends
        self.on = True
        self.said: list[str] = []
        self.trouble: list[BmcError] = []

    @property
    def is_on(self) -> bool:
        if self.trouble:
            raise self.trouble.pop()
        if self.on and "turn True" in self.said and self.said.count("turn True") == 1:
            self.ends -= 1
            if self.ends < 0:
                self.on = False
                if self.reports:
                    self.reports.hear_key(self.machine.hyphened, str(self.machine.address), KEYS[0])
        return self.on

    def turn(self, *, on: bool) -> None:
        self.on = on
        self.said.append(f"turn {on}")

    def boot_once(self, target: BootTarget) -> None:
        self.said.append(f"boot {target}")

    def boot_from_disk(self) -> None:
        self.said.append("disk")

    def insert(self, image: str) -> None:
        self.said.append(f"insert {image}")

    def eject(self) -> None:
        self.said.append("eject")


class Floor:
    """Machines with obedient BMCs; those in `gone` refuse the login."""

    def __init__(self, folder: Path, *, reports: bool = True) -> None:
        self.journal = InstallJournal(folder / "machines.jsonl")
        self.reports = Reports(self.journal.keep_key) if reports else None
        self.bmcs = {one.name: Obedient(one, self.reports) for one in ALL}
        self.gone: set[str] = set()
        self.answers = KEYS[0]
        self.watched: list[tuple[str, str]] = []

    @contextmanager
    def connect(self, machine: SiteMachine) -> Iterator[Bmc]:
        if machine.name in self.gone:
            raise BmcError(BmcErrorKind.UNREACHABLE, "BMC does not answer")
        yield cast(Bmc, self.bmcs[machine.name])

    def work(self, waits: Waits = QUICK) -> Installation:
        return Installation(
            self.connect,
            {"sjc1": self.reports} if self.reports else {},
            self.journal,
            host_key=lambda _: self.answers,
            watch=lambda machine, stage, _: self.watched.append((machine.name, str(stage))),
            waits=waits,
        )


@pytest.fixture
def floor(tmp_path: Path) -> Floor:
    return Floor(tmp_path)


def test_a_machine_is_turned_off_booted_once_reports_and_starts_from_its_disk(floor: Floor) -> None:
    (result,) = floor.work().run([ONE])
    assert (result.stage, result.why) == (InstallStage.DONE, "")
    assert floor.bmcs[ONE.name].said == ["turn False", "boot Pxe", "turn True", "disk", "turn True"]
    assert [stage for _, stage in floor.watched] == ["installing", "installed", "done"]
    record = floor.journal.of(ONE)
    assert (record.stage, record.key) == (InstallStage.DONE, KEYS[0])


def test_a_machine_that_is_gone_stops_no_other(floor: Floor) -> None:
    floor.gone = {TWO.name}
    results = floor.work().run(ALL)
    assert [(one.stage, one.unreachable) for one in results] == [
        (InstallStage.DONE, False),
        (InstallStage.FAILED, True),
        (InstallStage.DONE, False),
    ]


def test_a_temporarily_silent_bmc_does_not_fail_a_machine(floor: Floor) -> None:
    floor.bmcs[ONE.name].trouble = []
    work = floor.work()
    floor.bmcs[ONE.name].turn = _then_troubled(floor.bmcs[ONE.name])  # type: ignore[method-assign]
    (result,) = work.run([ONE])
    assert result.stage is InstallStage.DONE


def _then_troubled(bmc: Obedient):  # type: ignore[no-untyped-def]
    original = bmc.turn

    def turn(*, on: bool) -> None:
        original(on=on)
        bmc.trouble = [BmcError(BmcErrorKind.UNREACHABLE, "away"), BmcError(BmcErrorKind.BUSY, "starting")]

    return turn


def test_an_installer_that_never_ends_is_reported_with_where_to_look(floor: Floor) -> None:
    floor.bmcs[ONE.name].ends = 10**6
    (result,) = floor.work().run([ONE])
    assert result.stage is InstallStage.FAILED
    assert "has not finished its installation after" in result.why
    assert "console" in result.why


def test_a_machine_that_was_turned_off_too_early_does_not_count_as_installed(floor: Floor) -> None:
    floor.bmcs[ONE.name].reports = None
    (result,) = floor.work().run([ONE])
    assert (result.stage, "has not reported a host key" in result.why) == (InstallStage.FAILED, True)


def test_without_reports_being_off_again_is_the_end(tmp_path: Path) -> None:
    floor = Floor(tmp_path, reports=False)
    (result,) = floor.work().run([ONE])
    assert (result.stage, floor.journal.of(ONE).key) == (InstallStage.DONE, "")


def test_another_machine_at_the_address_is_refused(floor: Floor) -> None:
    floor.answers = KEYS[1]
    (result,) = floor.work().run([ONE])
    assert (result.stage, "another machine responds at 10.9.1.11" in result.why) == (InstallStage.FAILED, True)


def test_an_interrupted_run_resumes_each_machine(tmp_path: Path, floor: Floor) -> None:
    floor.journal.note(ONE, InstallStage.INSTALLING)
    floor.journal.note(TWO, InstallStage.INSTALLING)
    floor.journal.keep_key(TWO, KEYS[0])
    floor.journal.note(TWO, InstallStage.INSTALLED)
    floor.bmcs[ONE.name].said.append("turn True")  # by the interrupted run
    floor.bmcs[TWO.name].on = False
    again = Floor(tmp_path)
    again.bmcs = floor.bmcs
    for bmc in again.bmcs.values():
        bmc.reports = again.reports
    results = again.work(Waits(power=0.2, install=5, first_boot=0.2, poll=0.01)).run([ONE, TWO])
    assert [one.stage for one in results] == [InstallStage.DONE, InstallStage.DONE]
    assert again.bmcs[ONE.name].said == ["turn True", "disk", "turn True"]
    assert again.bmcs[TWO.name].said == ["disk", "turn True"]


def test_an_installation_that_started_long_ago_is_started_again(floor: Floor) -> None:
    floor.journal.note(ONE, InstallStage.INSTALLING)
    work = floor.work(Waits(power=0.2, install=0, first_boot=0.2, poll=0.01))
    work.run([ONE])
    assert floor.bmcs[ONE.name].said[:3] == ["turn False", "boot Pxe", "turn True"]


def test_an_interrupt_ends_the_waiting_and_leaves_the_journal_for_the_next_run(floor: Floor) -> None:
    floor.bmcs[ONE.name].ends = 10**6
    work = floor.work(Waits(poll=0.01))
    threading.Timer(0.2, work._stop.set).start()
    (result,) = work.run([ONE])
    assert (result.stage, result.why) == (InstallStage.INSTALLING, "the run was interrupted")
    assert floor.journal.of(ONE).stage is InstallStage.INSTALLING
    with pytest.raises(_StoppedError):
        work._wait("x", lambda: False, 10)


def test_machines_without_bmcs_are_turned_on_by_hand_and_report(tmp_path: Path) -> None:
    floor = Floor(tmp_path)
    one = machines(cluster(bmc="null"))[0]
    assert floor.reports
    reports = floor.reports
    timer = threading.Timer(0.1, lambda: reports.hear_key(one.hyphened, str(one.address), KEYS[0]))
    timer.start()
    (result,) = floor.work(Waits(install=5, first_boot=0.2, poll=0.01)).run([one])
    assert (result.stage, floor.bmcs[one.name].said) == (InstallStage.DONE, [])


def test_the_journal_survives_a_cut_line_and_forgets_a_machine_with_another_card(tmp_path: Path) -> None:
    path = tmp_path / "j"
    journal = InstallJournal(path)
    journal.note(ONE, InstallStage.DONE)
    journal.note(TWO, InstallStage.FAILED, "why")
    path.write_text(path.read_text() + '{"v": 1, "name": "lynx-gp')
    assert InstallJournal(path).of(ONE).stage is InstallStage.DONE
    assert (InstallJournal(path).of(TWO).stage, InstallJournal(path).of(TWO).why) == (InstallStage.FAILED, "why")
    InstallJournal(path).note(TWO, InstallStage.INSTALLING)
    assert InstallJournal(path).of(TWO).stage is InstallStage.INSTALLING
    other = replace(ONE, mac="b8:59:9f:99:99:99")
    assert InstallJournal(path).of(other) == InstallRecord(ONE.name, "b8:59:9f:99:99:99")


@pytest.fixture
def bucket() -> RecordStore:
    return RecordStore(MemoryStore(), "bucket records", shared=True)


def test_another_checkout_knows_what_is_installed_and_with_which_key(tmp_path: Path, bucket: RecordStore) -> None:
    journal = InstallJournal(tmp_path / "laptop", bucket)
    journal.note(ONE, InstallStage.INSTALLING)
    journal.keep_key(ONE, KEYS[0])
    journal.note(ONE, InstallStage.DONE)
    journal.note(TWO, InstallStage.FAILED, "why")
    other = InstallJournal(tmp_path / "clone", bucket)
    assert other.of(ONE) == journal.of(ONE)
    assert (other.of(ONE).key, other.of(TWO).why) == (KEYS[0], "why")


def test_the_newer_record_counts_whichever_checkout_wrote_it(tmp_path: Path, bucket: RecordStore) -> None:
    InstallJournal(tmp_path / "one", bucket).note(ONE, InstallStage.FAILED, "why")
    InstallJournal(tmp_path / "two", bucket).note(ONE, InstallStage.DONE)
    assert InstallJournal(tmp_path / "one", bucket).of(ONE).stage is InstallStage.DONE


def test_records_of_before_the_cluster_had_a_bucket_are_shared_by_the_next_run(
    tmp_path: Path, bucket: RecordStore
) -> None:
    InstallJournal(tmp_path / "laptop").note(ONE, InstallStage.DONE)
    journal = InstallJournal(tmp_path / "laptop", bucket)
    assert InstallJournal(tmp_path / "clone", bucket).of(ONE).stage is InstallStage.UNKNOWN
    journal.share()
    assert InstallJournal(tmp_path / "clone", bucket).of(ONE).stage is InstallStage.DONE


def test_a_bucket_that_does_not_answer_stops_no_installation_and_gets_the_records_later(
    tmp_path: Path, bucket: RecordStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def silent(*_: object) -> None:
        raise RecordStoreError("can't use bucket records: no route")

    journal = InstallJournal(tmp_path / "laptop", bucket)
    with monkeypatch.context() as patch:
        patch.setattr(bucket, "put", silent)
        journal.note(ONE, InstallStage.DONE)
        with pytest.raises(RecordStoreError):
            journal.share()
    journal.share()
    assert InstallJournal(tmp_path / "clone", bucket).of(ONE).stage is InstallStage.DONE


def test_a_record_of_a_newer_menagerie_is_refused(tmp_path: Path, bucket: RecordStore) -> None:
    bucket.put("machines/lynx-gpu-1", b'{"v": 2, "name": "lynx-gpu-1"}')
    with pytest.raises(NewerDataError, match="machines/lynx-gpu-1 in bucket records has version 2"):
        InstallJournal(tmp_path / "laptop", bucket)


def test_a_closed_port_has_no_host_key() -> None:
    assert scanned_key(replace(ONE, address=IPv4Address("127.9.9.9"), ssh_port=9)) == ""


def test_the_host_key_is_that_of_a_real_sshd(tmp_path: Path) -> None:
    folder = Path(tempfile.mkdtemp(prefix="menagerie-sshd-"))  # in a private place: root's sshd needs a user
    port, key = free_port(), folder / "key"
    try:
        sshd = debian.sshd(folder)
    except debian.Unavailable as reason:
        shutil.rmtree(folder)
        pytest.skip(f"no OpenSSH server: {reason}")
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
    as_nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] if os.geteuid() == 0 else []
    if as_nobody:
        for path in (folder, key):
            os.chown(path, 65534, 65534)
    options = ["-o", "ListenAddress=127.0.0.1", "-o", "PidFile=none"]
    command = [*as_nobody, str(sshd), "-D", "-e", "-f", "/dev/null", "-h", str(key), "-p", str(port), *options]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        one = replace(ONE, address=IPv4Address("127.0.0.1"), ssh_port=port)
        until(lambda: scanned_key(one), seconds=10)
        assert scanned_key(one) == " ".join(key.with_suffix(".pub").read_text().split()[:2])
    finally:
        process.terminate()
        process.wait()
        shutil.rmtree(folder)
