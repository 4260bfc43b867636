from __future__ import annotations

import pytest

from cluster.problems import SpecError
from workers.group_vars import read_variables

KNOWN = {"kubelet_config_patch", "containerd_systemd_cgroup"}
GROUPS = {"pool_gpu"}


def write(folder, name, text):
    (folder / "group_vars").mkdir(exist_ok=True)
    (folder / "group_vars" / name).write_text(text)


def test_a_cluster_without_further_variables_has_none(tmp_path):
    assert read_variables(tmp_path, GROUPS, KNOWN) == {}


def test_variables_are_read_by_group(tmp_path):
    write(tmp_path, "all.yml", "containerd_systemd_cgroup: false\nansible_timeout: 30\n")
    write(tmp_path, "pool_gpu.yml", "kubelet_config_patch: {maxPods: 64}\n")
    assert read_variables(tmp_path, GROUPS, KNOWN) == {
        "all": {"containerd_systemd_cgroup": False, "ansible_timeout": 30},
        "pool_gpu": {"kubelet_config_patch": {"maxPods": 64}},
    }


def test_all_mistakes_of_all_files_are_reported_with_their_place_and_a_fix(tmp_path):
    write(tmp_path, "all.yml", "\ncontainerd_systemd_cgroups: false\n")
    write(tmp_path, "pool_gpus.yml", "kubelet_config_patch: {}\n")
    with pytest.raises(SpecError) as caught:
        read_variables(tmp_path, GROUPS, KNOWN)
    text = str(caught.value)
    assert "all.yml:2:1: error[CFG-001] no role has a variable containerd_systemd_cgroups" in text
    assert "fix: write containerd_systemd_cgroup" in text
    assert "there is no group pool_gpus; did you mean pool_gpu?" in text


def test_a_file_that_is_not_yaml_is_a_problem_and_not_a_crash(tmp_path):
    write(tmp_path, "all.yml", "a: [\n")
    with pytest.raises(SpecError, match="CFG-011"):
        read_variables(tmp_path, GROUPS, KNOWN)
