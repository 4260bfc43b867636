from __future__ import annotations

import json
import os
from pathlib import Path

from network.render import NET_CONF, worker_files

GOLDEN = Path(__file__).parents[1] / "golden" / "lab" / "worker"


def test_the_files_of_a_lab_worker_match_the_golden_files(lab):
    """MENAGERIE_UPDATE_GOLDEN=1 rewrites them; review the difference."""
    rendered = {path.lstrip("/"): text for path, text in worker_files(lab).items()}
    if os.environ.get("MENAGERIE_UPDATE_GOLDEN"):
        for path, text in rendered.items():
            (GOLDEN / path).parent.mkdir(parents=True, exist_ok=True)
            (GOLDEN / path).write_text(text)
    kept = {str(path.relative_to(GOLDEN)): path.read_text() for path in GOLDEN.rglob("*") if path.is_file()}
    assert rendered == kept


def test_net_conf_is_json_with_the_derived_mtu(lab):
    assert json.loads(worker_files(lab)[NET_CONF])["Backend"]["MTU"] == 1500


def test_another_host_does_not_change_the_files_of_others(build, lab):
    fewer = build(hosts_by_pool={"workers": lab.hosts["workers"][:1]})
    assert worker_files(fewer) == worker_files(lab)


def test_workers_in_the_region_have_no_native_routes_and_other_thresholds_on_aws(build, lab):
    def differing(cluster):
        return {p for p, text in worker_files(cluster, in_cloud=True).items() if text != worker_files(cluster)[p]}

    assert differing(lab) == {NET_CONF}
    assert json.loads(worker_files(lab, in_cloud=True)[NET_CONF])["Backend"]["DirectRouting"] is False
    aws = build({"control_plane": {"cloud": "aws"}, "network": {"nodes": "10.77.0.0/16"}})
    assert differing(aws) == {NET_CONF, "/etc/sysctl.d/90-menagerie-neighbours.conf"}
