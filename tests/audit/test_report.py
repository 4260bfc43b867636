"""Output for auditors: the JSON document, and docs/reference/audit.md."""

from __future__ import annotations

import json
import os
import re
from dataclasses import replace
from pathlib import Path

from cluster.audit.decide import counts, decided, document, failed, results
from cluster.audit.evidence import Evidence, Kind, Unseen
from cluster.audit.reference import reference
from tests.audit.support import changed, root_file, with_files

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "golden" / "audit" / "report.json"


def test_report_of_a_rendered_cluster_with_a_violation_and_an_unseen_host_matches_the_golden_file(
    good: Evidence,
) -> None:
    """MENAGERIE_UPDATE_GOLDEN=1 rewrites it; review the diff."""
    path = "/etc/kubernetes/kubelet.conf"
    spoiled = changed(good, Kind.WORKER, lambda report: with_files(report, **{path: root_file("0644", secret=True)}))
    evidence = replace(spoiled, unseen=(Unseen(Kind.WORKER, "lab-region-1", "nobody logs in", expected=True),))
    text = json.dumps(document("lab", results(evidence), evidence), indent=1, ensure_ascii=False) + "\n"
    text = re.sub(r"the first expires \d{4}-\d\d-\d\d", "the first expires DATE", text)
    if os.environ.get("MENAGERIE_UPDATE_GOLDEN"):
        GOLDEN.parent.mkdir(parents=True, exist_ok=True)
        GOLDEN.write_text(text)
    assert text == GOLDEN.read_text()


def test_counts_match_the_results_and_only_a_failure_clears_ok(good: Evidence) -> None:
    all_results = results(good)
    by_section = counts(all_results)
    assert sum(sum(row.values()) for row in by_section.values()) == len(all_results)
    assert by_section["1.2"] == {"pass": 29, "exception": 1}
    assert document("lab", all_results, good)["ok"] is True
    broken = changed(good, Kind.API, lambda _: {"providers": ()})
    ids = [result.control.id for result in failed(results(broken))]
    assert (ids, document("lab", results(broken), broken)["ok"]) == (["1.2.28"], False)


def test_many_hosts_with_the_same_problem_are_one_line(good: Evidence) -> None:
    (worker,) = good.of(Kind.WORKER)
    spoiled = with_files(worker, **{"/etc/kubernetes/kubelet.conf": root_file("0644")})
    many = tuple(worker.model_copy(update={"host": f"w-{n}", **spoiled}) for n in range(1, 6))
    (control,) = (each.control for each in results(good) if each.control.id == "4.1.5")
    line = decided(control, replace(good, reports=many)).observed
    assert line == "w-1, w-2, w-3 and 2 more: /etc/kubernetes/kubelet.conf is 0644 root:root"


def test_the_reference_of_controls_is_current() -> None:
    path = ROOT / "docs" / "reference" / "audit.md"
    if os.environ.get("MENAGERIE_UPDATE_GOLDEN"):
        path.write_text(reference())
    assert path.read_text() == reference(), "run `make golden`"
