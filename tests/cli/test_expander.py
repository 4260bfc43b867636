"""`expander` and `show prices`: output and refusals."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.conftest import Menagerie
from tests.scheduling.expander.asking import Authority

ROOT = Path(__file__).resolve().parents[2]
GIBBON = str(ROOT / "examples/gcp-small/cluster.yaml")


def test_pools_are_listed_with_their_prices(menagerie: Menagerie) -> None:
    page = menagerie("show", "prices", GIBBON)
    assert (page.code, "cpu" in page.out, "c3-standard-8" in page.out) == (0, True, True)
    assert list(json.loads(menagerie("show", "prices", GIBBON, "--json").out)["pools"]) == ["cpu"]


def test_a_key_of_another_certificate_is_refused_at_start(menagerie: Menagerie, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    certificate, _ = authority.issue("expander")
    _, other = authority.issue("other")
    page = menagerie(
        "expander", "run", GIBBON, "--cert", str(certificate), "--key", str(other), "--listen", "127.0.0.1:0"
    )
    assert page.code == 2
    assert "the key belongs to another certificate" in page.err


def test_the_help_names_the_flags_for_cluster_autoscaler(menagerie: Menagerie) -> None:
    page = menagerie("expander", "run", "--help")
    assert "--expander=grpc,least-waste" in page.out
    assert "--grpc-expander-url" in page.out
