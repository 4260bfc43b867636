"""What an alert is."""

from __future__ import annotations

from dataclasses import dataclass

from cluster.monitoring import Severity

RUNBOOKS = "docs/runbooks"


@dataclass(frozen=True)
class Alert:
    """An alert that fires once `expr` has had a result for `holds`.

    says: the message, in Prometheus' template language. means: what is wrong, and for whom, in one or two sentences.
    jobs: those that `expr` reads. runbook: its page, without folder and ending. first: its first command, without
    `./menagerie`; CLUSTER stands for the cluster's name. when: a job without which the alert makes no sense, "" if always.
    severity: None if nobody is to look at it.
    """

    name: str
    expr: str
    holds: str
    severity: Severity | None
    says: str
    means: str
    jobs: tuple[str, ...]
    runbook: str
    first: str
    when: str = ""

    @property
    def page(self) -> str:
        return f"{RUNBOOKS}/{self.runbook}.md"

    def command(self, cluster: str) -> str:
        """Return the runbook's first command for a cluster."""
        return f"./menagerie {self.first.replace('CLUSTER', cluster)}"
