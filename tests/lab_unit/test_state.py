from __future__ import annotations

import stat
from pathlib import Path

import pytest

from cluster.shared import NewerDataError
from sandbox.lab import cgroups, clean, mounts, networks, nspawn, state
from sandbox.lab.errors import ForeignLabError


@pytest.fixture(autouse=True)
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A state folder and cgroup hierarchy for the test, without network namespaces of a lab."""
    monkeypatch.setenv("MENAGERIE_LAB_STATE", str(tmp_path / "state"))
    hierarchy = tmp_path / "cgroup"
    hierarchy.mkdir()
    monkeypatch.setattr(cgroups, "hierarchies", lambda: (hierarchy,))
    monkeypatch.setattr(networks, "names", lambda lab=None: ())
    monkeypatch.setattr(networks, "links", lambda lab=None: ())
    monkeypatch.setattr(nspawn, "leftover_machines", lambda prefix: ())
    return hierarchy


def _other_lab(hierarchy: Path, checkout: Path, members: str) -> None:
    owner = {"lab": "ffffff", "checkout": str(checkout), "cluster": "lab", "boot": "b"}
    state.write(state.folder("owner.json", lab="ffffff"), owner)
    group = hierarchy / cgroups.ROOT / "ffffff" / "store"
    group.mkdir(parents=True)
    (group / "cgroup.procs").write_text(members)


def test_each_checkout_has_its_own_lab() -> None:
    assert state.lab_id(Path("/a")) != state.lab_id(Path("/b"))
    assert state.lab_id(Path("/a")) == state.lab_id(Path("/a"))


def test_a_truncated_file_counts_as_missing(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"lab": ')
    assert state.read(tmp_path / "a.json") is None


def test_a_secret_file_is_created_with_its_mode_and_without_other_files(tmp_path: Path) -> None:
    state.write(tmp_path / "a.json", {"a": 1}, 0o600)
    assert stat.S_IMODE((tmp_path / "a.json").stat().st_mode) == 0o600
    assert [entry.name for entry in tmp_path.iterdir() if entry.is_file()] == ["a.json"]


def test_a_claim_records_the_labs_owner() -> None:
    state.claim("horus")
    owner = state.owner(state.lab_id())
    assert owner is not None
    assert (owner.checkout, owner.cluster, owner.boot) == (str(state.CHECKOUT), "horus", state.boot_id())


def test_a_live_lab_of_another_checkout_is_refused_by_its_path(machine: Path, tmp_path: Path) -> None:
    _other_lab(machine, tmp_path, "4242\n")
    with pytest.raises(ForeignLabError, match=f"checkout {tmp_path}"):
        state.refuse_foreign()


def test_a_live_lab_without_an_owner_file_is_refused_by_its_id(machine: Path, tmp_path: Path) -> None:
    _other_lab(machine, tmp_path, "4242\n")
    state.folder("owner.json", lab="ffffff").unlink()
    with pytest.raises(ForeignLabError, match="ffffff"):
        state.refuse_foreign()


def test_a_live_lab_whose_checkout_is_gone_is_an_orphan_and_is_removed(
    machine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _other_lab(machine, tmp_path / "gone", "4242\n")
    state.refuse_foreign()
    assert state.is_live("ffffff")
    removed: list[str] = []
    monkeypatch.setattr(clean, "lab", removed.append)
    clean.dead_labs()
    assert removed == ["ffffff"]


def test_a_lab_without_a_process_is_cleaned_and_a_live_one_is_not(machine: Path, tmp_path: Path) -> None:
    _other_lab(machine, tmp_path, "4242\n")
    state.write(state.folder("hosts", "api-1", "host.json", lab="dead00"), {})
    clean.dead_labs()
    assert not state.folder(lab="dead00").exists()
    assert state.folder(lab="ffffff").exists()


def test_remains_are_listed_by_kind(machine: Path, tmp_path: Path) -> None:
    _other_lab(machine, tmp_path, "4242\n")
    lines = clean.remains("ffffff").lines()
    assert lines == ("processes: 4242", "cgroups: store", f"folders: {state.folder(lab='ffffff')}")


def test_an_unknown_lab_has_no_remains() -> None:
    assert clean.remains("000000").lines() == ()
    assert clean.labs() == ()


def test_members_of_all_groups_below_are_found_once(machine: Path) -> None:
    for name in ("a", "a/supervisor", "a/payload"):
        (machine / name).mkdir()
    (machine / "a/supervisor/cgroup.procs").write_text("7\n0\n")
    (machine / "a/payload/cgroup.procs").write_text("8\n7\n")
    assert cgroups.members("a") == (7, 8)


def test_both_versions_of_cgroups_are_found_among_the_mounts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    table = tmp_path / "mounts"
    table.write_text(
        "proc /proc proc rw 0 0\ncgroup /sys/fs/cgroup/cpu cgroup rw 0 0\ncgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n"
    )
    assert cgroups.hierarchies(table) == (Path("/sys/fs/cgroup/cpu"), Path("/sys/fs/cgroup/unified"))


def test_mounts_below_a_folder_are_listed_in_reverse_order(tmp_path: Path) -> None:
    table = tmp_path / "mounts"
    table.write_text("lab /labs/one overlay rw 0 0\nlab /labs/one/a\\040b tmpfs rw 0 0\nlab /labs/one2 tmpfs rw 0 0\n")
    assert mounts.below(Path("/labs/one"), table) == (Path("/labs/one/a b"), Path("/labs/one"))


def test_a_lab_of_a_newer_menagerie_is_not_treated_as_an_orphan(machine: Path, tmp_path: Path) -> None:
    _other_lab(machine, tmp_path / "gone", "4242\n")
    file = state.folder("owner.json", lab="ffffff")
    content = state.read(file)
    state.write(file, {**content, "cores": 2})
    assert state.is_orphan("ffffff")
    state.write(file, {**content, "version": 2})
    with pytest.raises(NewerDataError, match=r"owner\.json has version 2"):
        state.refuse_foreign()
