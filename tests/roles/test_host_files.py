from __future__ import annotations

import os

import pytest


@pytest.fixture
def own():
    import grp
    import pwd

    return f"{pwd.getpwuid(os.getuid()).pw_name}:{grp.getgrgid(os.getgid()).gr_name}"


def entry(path, own, text="new\n", mode="0640"):
    return {"path": str(path), "text": text, "mode": mode, "owner": own}


def test_a_file_is_replaced_in_one_step_with_its_mode(module, shared, tmp_path, own):
    path = tmp_path / "deep" / "file"
    ((name, before, after),) = module("host_files").changes([entry(path, own)], [])
    assert (name, before) == (str(path), shared.ABSENT)
    shared.place(name, after)
    assert path.read_text() == "new\n"
    assert path.stat().st_mode & 0o7777 == 0o640
    assert os.listdir(path.parent) == ["file"]


def test_a_file_that_is_right_is_left_alone(module, shared, tmp_path, own):
    path = tmp_path / "file"
    shared.place(str(path), shared.wanted("new\n", "0640", own))
    assert module("host_files").changes([entry(path, own)], [str(tmp_path / "gone")]) == []


@pytest.mark.parametrize("wrong", [{"text": "other\n"}, {"mode": "0600"}])
def test_content_and_mode_both_count(module, shared, tmp_path, own, wrong):
    path = tmp_path / "file"
    shared.place(str(path), shared.wanted("new\n", "0640", own))
    assert len(module("host_files").changes([entry(path, own, **wrong)], [])) == 1


def test_a_link_is_replaced_and_what_it_points_to_is_kept(module, shared, tmp_path, own):
    victim, link = tmp_path / "victim", tmp_path / "link"
    victim.write_text("keep")
    link.symlink_to(victim)
    ((name, _, after),) = module("host_files").changes([entry(link, own)], [])
    shared.place(name, after)
    assert (victim.read_text(), link.read_text(), link.is_symlink()) == ("keep", "new\n", False)


def test_the_difference_shows_both_texts_and_modes(module, shared, tmp_path, own):
    path = tmp_path / "file"
    path.write_text("old\n")
    diff = module("host_files").difference(*module("host_files").changes([entry(path, own)], [])[0])
    assert (diff["before"], diff["after"]) == ("old\n", "new\n")
    assert "(0640" in diff["after_header"]


def test_settings_of_the_running_kernel_are_compared(module, tmp_path, monkeypatch):
    monkeypatch.setattr(module("host_files"), "PROC_SYS", str(tmp_path))
    (tmp_path / "net").mkdir()
    (tmp_path / "net" / "same").write_text("4096\t8192\n")
    (tmp_path / "net" / "other").write_text("1\n")
    wanted = {"net.same": "4096 8192", "net.other": "2", "net.gone": "3"}
    assert module("host_files").compare_settings(wanted) == ({"net.other": ("1", "2")}, ["net.gone"])


def test_the_neighbour_thresholds_are_missing_outside_the_first_network_namespace(module, tmp_path, monkeypatch):
    monkeypatch.setattr(module("host_files"), "PROC_SYS", str(tmp_path))
    text = "# why\nnet.ipv4.neigh.default.gc_thresh3 = 16384\n"
    settings = module("host_files").live_settings([{"path": "/etc/sysctl.d/90-x.conf", "text": text}])
    assert module("host_files").compare_settings(settings) == ({}, ["net.ipv4.neigh.default.gc_thresh3"])


def test_settings_are_applied_and_refusals_are_told(module, tmp_path, monkeypatch):
    monkeypatch.setattr(module("host_files"), "PROC_SYS", str(tmp_path))
    (tmp_path / "fine").write_text("1")
    (tmp_path / "a_folder").mkdir()
    refused = module("host_files").apply_settings({"fine": ("1", "2"), "a_folder": ("1", "2")})
    assert (tmp_path / "fine").read_text() == "2"
    assert list(refused) == ["a_folder"]
    assert "wanted 2" in refused["a_folder"]


@pytest.mark.parametrize(
    ("key", "path"),
    [
        ("net.ipv4.ip_forward", "net/ipv4/ip_forward"),
        ("net/ipv4/conf/eth0.100/rp_filter", "net/ipv4/conf/eth0.100/rp_filter"),
        ("net.ipv4.conf.eth0/100.rp_filter", "net/ipv4/conf/eth0.100/rp_filter"),
    ],
)
def test_keys_become_paths_as_sysctl_d_says(module, key, path):
    assert module("host_files").setting_path(key) == f"/proc/sys/{path}"


def test_only_files_of_sysctl_d_are_applied(module):
    assert module("host_files").live_settings([{"path": "/etc/other.conf", "text": "a = 1"}]) == {}


def test_a_kernel_without_loadable_modules_needs_none(module, tmp_path, monkeypatch):
    files = [{"path": "/etc/modules-load.d/x.conf", "text": "# why\nno_such_module\n"}]
    present = tmp_path / "modules"
    present.touch()
    monkeypatch.setattr(module("host_files"), "PROC_MODULES", str(present))
    assert module("host_files").missing_modules(files) == ["no_such_module"]
    monkeypatch.setattr(module("host_files"), "PROC_MODULES", str(tmp_path / "gone"))
    assert module("host_files").missing_modules(files) == []


def test_active_swap_is_read_without_its_heading(module, tmp_path, monkeypatch):
    swaps = tmp_path / "swaps"
    swaps.write_text("Filename Type Size Used Priority\n/dev/sda2 partition 1 0 -2\n")
    monkeypatch.setattr(module("host_files"), "PROC_SWAPS", str(swaps))
    assert module("host_files").active_swap() == ["/dev/sda2"]
