"""Write metrics of this host for node_exporter, or print them.

    menagerie-node-metrics host [OPTIONS] UNIT...   units, preflight, reboots, konnectivity's agent
    menagerie-node-metrics gpus [OPTIONS]           NVIDIA's GPUs and their pods; nothing on a host without
    --folder=FOLDER       write a file there, for a timer; without it, print
    --agent-port=PORT     of the health of konnectivity's agent

Placed by Menagerie's role node_metrics. Two commands, because nvidia-smi may wait for a broken GPU for ever.
"""

from __future__ import annotations

import os
import sys
import time
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress

from . import PREFIX, Sample, Unanswered, devices, gpus, host, page

STALE_S = 300
"""Five turns of the timer."""
STUCK = ".stuck"
"""Ending of a file that the collector no longer reads."""
WARNING = 4


def of_host(here: host.Host, given: Namespace) -> Iterator[Sample]:
    yield from answered("systemd", given.former, lambda: host.units(here, given.units))
    yield from host.preflight(here)
    yield host.reboot(here)
    yield host.tunnels(given.agent_port)
    if given.folder:
        yield from answered("exporter", given.former, lambda: follow(here))
    yield Sample("reader_stuck", bool(given.folder) and removed(here.at(place(given.folder, "gpus")), time.time()))


def follow(here: host.Host) -> list[Sample]:
    """Start the exporter again if the kubelet or the cluster's authorities have another certificate. It loses nothing."""
    if host.is_outdated(here, time.time(), time.monotonic()):
        here.run(["systemctl", "try-restart", host.EXPORTER])
    return []


def of_gpus(here: host.Host, given: Namespace) -> Iterator[Sample]:
    on_bus = here.pci_gpus()
    if not on_bus:
        return
    yield Sample("gpus", on_bus, (("by", "bus"),))
    xml = ""

    def read() -> Iterator[Sample]:
        nonlocal xml
        xml = here.run(["nvidia-smi", "-q", "-x"])
        return gpus.samples(xml)

    yield from answered("nvidia-smi", given.former, read)
    numbers = gpus.uuids(xml) if xml else {}
    yield Sample("gpus", len(numbers), (("by", "driver"),))
    yield from answered("kubelet", given.former, lambda: of_pods(devices.pods(here.at(devices.SOCKET)), numbers))


def of_pods(pods: dict[str, list[tuple[str, str]]], numbers: dict[str, str]) -> Iterator[Sample]:
    for uuid, its in pods.items():
        for namespace, name in its if uuid in numbers else ():
            yield Sample("gpu_pod", 1, (("gpu", numbers[uuid]), ("namespace", namespace), ("pod", name)))


def answered(reader: str, former: str, read: Callable[[], Iterable[Sample]]) -> Iterator[Sample]:
    """Yield what is read, and whether it could be read: all of it, or nothing. A failure is a line in the journal once.

    former: the text of the file that this run replaces.
    """
    samples: list[Sample] = []
    failed = Sample("reader_failed", 0, (("reader", reader),))
    try:
        samples = list(read())
    except Unanswered as error:
        failed = failed._replace(value=1)
        if page([failed]).splitlines()[-1] not in former:
            print(f"<{WARNING}>{error}", file=sys.stderr, flush=True)
    yield failed
    yield from samples


def place(folder: str, command: str) -> str:
    return os.path.join(folder, f"{PREFIX}{command}.prom")


def removed(path: str, now: float) -> bool:
    """Remove a file that is too old to be true. Return whether it was, or is gone since such a removal."""
    mark = f"{path}{STUCK}"
    try:
        age = now - os.stat(path).st_mtime
    except FileNotFoundError:
        return os.path.exists(mark)
    if age > STALE_S:
        os.replace(path, mark)
        return True
    if os.path.exists(mark):
        os.unlink(mark)
    return False


def write(path: str, text: str) -> None:
    """Write atomically, because the collector may read at any time; readable for any user that it runs as."""
    os.makedirs(os.path.dirname(path), mode=0o755, exist_ok=True)
    beside = f"{path}.{os.getpid()}"
    with open(beside, "w") as handle:
        handle.write(text)
    os.chmod(beside, 0o644)
    os.replace(beside, path)


COMMANDS = {"host": of_host, "gpus": of_gpus}


def main(words: list[str], root: str = "/") -> int:
    parser = ArgumentParser(
        prog="menagerie-node-metrics", description=__doc__, formatter_class=RawDescriptionHelpFormatter
    )
    parser.add_argument("command", choices=COMMANDS)
    parser.add_argument("--folder", default="")
    parser.add_argument("--agent-port", type=int, default=0)
    parser.add_argument("units", nargs="*")
    given, here = parser.parse_intermixed_args(words), host.Host(root)
    path = here.at(place(given.folder, given.command))
    given.former = here.read(place(given.folder, given.command)) if given.folder else ""
    text = page(COMMANDS[given.command](here, given))
    if not given.folder:
        print(text, end="")
    elif text:
        write(path, text)
    else:
        for former in (path, f"{path}{STUCK}"):
            with suppress(FileNotFoundError):
                os.unlink(former)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
