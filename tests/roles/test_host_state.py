from __future__ import annotations

import os

import pytest

NOTHING = {
    "host_name": None,
    "commands": {},
    "programs": [],
    "attempts": 1,
    "timeout": 1,
    "files": [],
    "absent": [],
    "unsettable": "fail",
    "may_lack": [],
    "never_lower": False,
    "swap_off": False,
    "units": [],
}
RUNS_SINCE_BOOT = "LoadState=loaded\nActiveState=active\nUnitFileState=enabled\nNeedDaemonReload=no\n"


@pytest.fixture
def systemctl(host, monkeypatch):
    """Return the verbs of all systemctl calls. Every unit has run since the machine started."""
    called = []

    def run(words, _meaning):
        called.append(words[1])
        return RUNS_SINCE_BOOT

    monkeypatch.setattr(host("units"), "run", run)
    monkeypatch.setattr(host("units"), "newer_inputs", lambda *_: [])
    return called


def file(path, own):
    return {"path": str(path), "text": "new\n", "mode": "0644", "owner": own, "block": False}


def test_a_dry_run_writes_nothing_and_predicts_the_restart(module, systemctl, tmp_path, own):
    units = [{"unit": "x.service", "inputs": [str(tmp_path / "conf.d")], "restarted": "always"}]
    state = {**NOTHING, "files": [file(tmp_path / "conf.d" / "a", own)], "units": units}
    result = module("host_state").converge(state, check=True)
    assert (result["changed"], result["actions"]) == (True, ["restart x.service"])
    assert (os.listdir(tmp_path), systemctl) == ([], ["show"])


def test_a_second_run_changes_nothing(module, systemctl, tmp_path, own):
    state = {**NOTHING, "files": [file(tmp_path / "a", own)]}
    assert module("host_state").converge(state, check=False)["changed"]
    result = module("host_state").converge(state, check=False)
    assert (result["changed"], result["diff"]) == (False, [])


def test_everything_that_the_host_lacks_is_reported_together_and_nothing_is_touched(module, host, tmp_path, own):
    state = {
        **NOTHING,
        "host_name": "another",
        "commands": {"no-such-command": "its-package", "sh": "dash"},
        "files": [file(tmp_path / "a", own)],
    }
    with pytest.raises(host("files").Refused) as refused:
        module("host_state").converge(state, check=False)
    assert f"called {os.uname().nodename}, not another" in str(refused.value)
    assert "no-such-command is missing: install its-package" in str(refused.value)
    assert "dash" not in str(refused.value)
    assert os.listdir(tmp_path) == []


def test_a_higher_kernel_setting_is_kept_in_the_kernel_and_in_the_file(
    module, host, systemctl, tmp_path, own, monkeypatch
):
    monkeypatch.setattr(host("kernel"), "PROC_SYS", str(tmp_path / "proc"))
    monkeypatch.setattr(host("kernel"), "SYSCTL_D", str(tmp_path / "sysctl.d"))
    live, path = tmp_path / "proc" / "limit", tmp_path / "sysctl.d" / "90-x.conf"
    live.parent.mkdir()
    live.write_text("20000\n")
    params = {**NOTHING, "files": [{**file(path, own), "text": "limit = 16384\n"}], "never_lower": True}
    assert module("host_state").converge(params, check=True)["files"] == [str(path)]
    first, second = (module("host_state").converge(params, check=False) for _ in range(2))
    assert (first["files"], first["live"], second["changed"]) == ([str(path)], [], False)
    assert (path.read_text(), live.read_text()) == ("limit = 20000\n", "20000\n")
    module("host_state").converge({**params, "never_lower": False}, check=False)
    assert (path.read_text(), live.read_text()) == ("limit = 16384\n", "16384")
