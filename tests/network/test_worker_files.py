from __future__ import annotations

import json
import os
from pathlib import Path

from network.render import NET_CONF, worker_files

GOLDEN = Path(__file__).parents[1] / "golden" / "lab" / "worker"


def test_the_files_of_a_lab_worker_are_what_was_reviewed(lab):
    """MENAGERIE_UPDATE_GOLDEN=1 rewrites them; review the difference."""
    made = {path.lstrip("/"): text for path, text in worker_files(lab).items()}
    if os.environ.get("MENAGERIE_UPDATE_GOLDEN"):
        for path, text in made.items():
            (GOLDEN / path).parent.mkdir(parents=True, exist_ok=True)
            (GOLDEN / path).write_text(text)
    kept = {str(path.relative_to(GOLDEN)): path.read_text() for path in GOLDEN.rglob("*") if path.is_file()}
    assert made == kept


def test_net_conf_is_json_with_the_derived_mtu(lab):
    assert json.loads(worker_files(lab)[NET_CONF])["Backend"]["MTU"] == 1500


def test_another_host_changes_no_file_of_the_others(build, lab):
    fewer = build(hosts_by_pool={"workers": lab.hosts["workers"][:1]})
    assert worker_files(fewer) == worker_files(lab)


def test_workers_in_the_cloud_differ_on_aws_alone(build, lab):
    assert worker_files(lab, in_cloud=True) == worker_files(lab)
    aws = build({"control_plane": {"cloud": "aws"}})
    changed = {path for path, text in worker_files(aws, in_cloud=True).items() if text != worker_files(aws)[path]}
    assert changed == {"/etc/sysctl.d/90-menagerie-neighbours.conf"}
