from __future__ import annotations

import pytest


def test_settings_of_the_running_kernel_are_compared(host, tmp_path, monkeypatch):
    monkeypatch.setattr(host("kernel"), "PROC_SYS", str(tmp_path))
    (tmp_path / "net").mkdir()
    (tmp_path / "net" / "same").write_text("4096\t8192\n")
    (tmp_path / "net" / "other").write_text("1\n")
    expected = {"net.same": "4096 8192", "net.other": "2", "net.gone": "3"}
    assert host("kernel").compare_settings(expected) == ({"net.other": ("1", "2")}, ["net.gone"])


def test_the_neighbour_thresholds_are_missing_outside_the_first_network_namespace(host, tmp_path, monkeypatch):
    monkeypatch.setattr(host("kernel"), "PROC_SYS", str(tmp_path))
    text = "# why\nnet.ipv4.neigh.default.gc_thresh3 = 16384\n"
    settings = host("kernel").live_settings([{"path": "/etc/sysctl.d/90-x.conf", "text": text}])
    assert host("kernel").compare_settings(settings) == ({}, ["net.ipv4.neigh.default.gc_thresh3"])


def test_settings_are_applied_and_refusals_are_reported(host, tmp_path, monkeypatch):
    monkeypatch.setattr(host("kernel"), "PROC_SYS", str(tmp_path))
    (tmp_path / "fine").write_text("1")
    (tmp_path / "a_folder").mkdir()
    refused = host("kernel").apply_settings({"fine": ("1", "2"), "a_folder": ("1", "2")})
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
def test_keys_become_paths_as_sysctl_d_specifies(host, key, path):
    assert host("kernel").setting_path(key) == f"/proc/sys/{path}"


def test_only_files_of_sysctl_d_are_applied(host):
    assert host("kernel").live_settings([{"path": "/etc/other.conf", "text": "a = 1"}]) == {}


def test_a_kernel_without_loadable_modules_needs_none(host, tmp_path, monkeypatch):
    files = [{"path": "/etc/modules-load.d/x.conf", "text": "# why\nno_such_module\n"}]
    present = tmp_path / "modules"
    present.touch()
    monkeypatch.setattr(host("kernel"), "PROC_MODULES", str(present))
    assert host("kernel").missing_modules(files) == ["no_such_module"]
    monkeypatch.setattr(host("kernel"), "PROC_MODULES", str(tmp_path / "gone"))
    assert host("kernel").missing_modules(files) == []


def test_active_swap_is_read_without_the_heading(host, tmp_path, monkeypatch):
    swaps = tmp_path / "swaps"
    swaps.write_text("Filename Type Size Used Priority\n/dev/sda2 partition 1 0 -2\n")
    monkeypatch.setattr(host("kernel"), "PROC_SWAPS", str(swaps))
    assert host("kernel").active_swap() == ["/dev/sda2"]


def test_settings_of_a_group_that_the_kernel_lacks_are_left_out_and_reported(host, tmp_path, monkeypatch):
    monkeypatch.setattr(host("kernel"), "PROC_SYS", str(tmp_path))
    (tmp_path / "net" / "ipv4").mkdir(parents=True)
    text = "# why\nnet.ipv4.x = 1\nnet/ipv6/conf/all/y = 1\nnet.ipv6.z = 1\nnet.ipv60.z = 1\n"
    files = [{"path": "/etc/sysctl.d/60-x.conf", "text": text}, {"path": "/etc/other", "text": "net.ipv6.z = 1\n"}]
    kept, left_out = host("kernel").without(files, ["net.ipv4", "net.ipv6"])
    assert left_out == ["net/ipv6/conf/all/y", "net.ipv6.z"]
    assert kept == [{**files[0], "text": "# why\nnet.ipv4.x = 1\nnet.ipv60.z = 1\n"}, files[1]]
    (tmp_path / "net" / "ipv6").mkdir()
    assert host("kernel").without(files, ["net.ipv4", "net.ipv6"]) == (files, [])


def test_a_higher_value_in_the_running_kernel_is_never_lowered(host, tmp_path, monkeypatch):
    monkeypatch.setattr(host("kernel"), "PROC_SYS", str(tmp_path))
    for name, live in {"first": "128", "second": "20000", "third": "16384", "words": "4096 9"}.items():
        (tmp_path / name).write_text(f"{live}\n")
    text = "# why\nfirst = 0\nsecond = 14745\nthird = 16384\nwords = 1 9\ngone = 1\n"
    other = {"path": "/etc/other.conf", "text": "second = 1\n"}
    raised = host("kernel").raised([{"path": "/etc/sysctl.d/90-x.conf", "text": text, "mode": "0600"}, other])
    assert raised == [
        {"path": "/etc/sysctl.d/90-x.conf", "text": text.replace("14745", "20000"), "mode": "0600"},
        other,
    ]
    assert host("kernel").raised(raised) == raised
