"""``python program.py SETTINGS``: menagerie-traffic, with an API that is a file next to SETTINGS: pods.json.

pods.json: lists of uid, namespace, name and whether the pod is in the host's network. It is replaced when it changes.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "roles" / "traffic" / "files"))

from menagerie_traffic import agent
from menagerie_traffic.api import Api, Following, Pod
from menagerie_traffic.plan import planned
from menagerie_traffic.reservations import Reservations
from menagerie_traffic.table import Table


class FileApi(Api):
    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path

    def watch(self, change: Callable[[dict[str, Pod]], None]) -> None:
        before = 0
        while True:
            written = self._path.stat().st_mtime_ns
            if written != before:
                pods = [Pod(*each) for each in json.loads(self._path.read_text())]
                change({each.uid: each for each in pods})
            before = written
            time.sleep(0.05)


def main() -> None:
    path = Path(sys.argv[1])
    given = json.loads(path.read_text())
    changed = threading.Event()
    following = Following(FileApi(path.with_name("pods.json")), changed, print)
    following.start()
    counting = agent.Agent(
        Table(planned(given)),
        Reservations(given["reservations"], given["attachments"]),
        following,
        agent.Settings(given["metrics"], given["totals"], given["every_s"]),
        print,
    )
    agent.run(counting, changed, threading.Event())


if __name__ == "__main__":
    main()
