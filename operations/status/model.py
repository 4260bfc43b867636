"""The parts of a status."""

from __future__ import annotations

from dataclasses import asdict, dataclass

ANSWER_S = 5.0
"""Time-out of each part."""


@dataclass(frozen=True)
class StatusItem:
    """One line of a status: its subject, whether it is healthy, the details, and a command that helps if it is not."""

    group: str
    name: str
    ok: bool
    detail: str
    help: str = ""


@dataclass(frozen=True)
class Status:
    cluster: str
    endpoint: str
    items: tuple[StatusItem, ...]

    @property
    def ok(self) -> bool:
        return all(item.ok for item in self.items)

    @property
    def wrong(self) -> tuple[StatusItem, ...]:
        return tuple(item for item in self.items if not item.ok)

    def to_json(self) -> dict[str, object]:
        return {
            "cluster": self.cluster,
            "ok": self.ok,
            "endpoint": self.endpoint,
            "items": [asdict(item) for item in self.items],
        }


def kubectl(cluster: str, words: str) -> str:
    """Return a kubectl command for this cluster."""
    return f'kubectl --kubeconfig "$(./menagerie kubeconfig {cluster})" {words}'
