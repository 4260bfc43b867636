"""The real node_exporter with the command line and the configuration that workers get, at another port and with other files."""

from __future__ import annotations

import re
import ssl
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cluster.metrics.identity import SAN, USER
from components.workers import host_config
from network.addresses import plan
from stacks.certificates import Request, Signed, issue, new_authority
from tests.ports import free_port
from tests.programs import program
from tests.waiting import until

CREDENTIALS = "${CREDENTIALS_DIRECTORY}"
"""systemd's folder with copies of the unit's files."""
UNIT, WEB = "/etc/systemd/system/node-exporter.service", "/etc/menagerie/node-exporter.yml"
FOLDER = "/var/lib/prometheus/node-exporter"
KUBERNETES, SERVING, STRANGER = (new_authority(name) for name in ("kubernetes", "kubelet-serving", "stranger"))
SCRAPER = Request(USER, dns_names=(SAN,), usages=("client",))


class Exporter:
    """A node_exporter that runs, with its files below `folder`."""

    def __init__(self, folder: Path, port: int, process: subprocess.Popen[bytes]) -> None:
        self.folder, self.port, self.process = folder, port, process
        self._numbers = iter(range(100))

    def place(self, name: str, text: str) -> None:
        """Replace a credential as the kubelet does its certificate: by renaming."""
        beside = self.folder / f"{name}.new"
        beside.write_text(text)
        beside.rename(self.folder / name)

    def client(self, own: Signed | None, trusted: Signed = SERVING) -> ssl.SSLContext:
        """Return a context that verifies the exporter, with a certificate of its own or none."""
        context = ssl.create_default_context(cadata=trusted.certificate)
        if own:
            path = self.folder / f"client-{next(self._numbers)}.pem"
            path.write_text(own.certificate + own.private_key)
            context.load_cert_chain(path)
        return context

    def read(self, context: ssl.SSLContext, path: str = "/metrics") -> str:
        handlers = [urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context)]
        opener = urllib.request.build_opener(*handlers)
        with opener.open(f"https://localhost:{self.port}{path}", timeout=30) as answer:
            return str(answer.read().decode())


OF_KUBELET = Request("system:node:worker-1", ("system:nodes",), ("worker-1", "localhost"), ("127.0.0.1",), ("server",))


def of_kubelet() -> str:
    """Return a serving certificate and its key in one text, as a kubelet's file has them."""
    own = issue(SERVING, OF_KUBELET)
    return own.certificate + own.private_key


def words(unit: str) -> list[str]:
    """Return the words of a unit's command line. systemd continues lines, and reads `$$` as `$`."""
    (line,) = re.findall(r"^ExecStart=(.*)$", unit.replace("\\\n", " "), re.MULTILINE)
    return [word.replace("$$", "$") for word in line.split()]


@contextmanager
def running(hybrid, source, folder: Path) -> Iterator[Exporter]:  # type: ignore[no-untyped-def]
    texts = {file.path: file.text for file in host_config(hybrid, "cpu", plan(hybrid), source).files}
    port = free_port()
    (folder / "textfile").mkdir()
    (folder / "web.yml").write_text(texts[WEB])
    (folder / "serving.pem").write_text(of_kubelet())
    (folder / "clients.crt").write_text(KUBERNETES.certificate)
    moved = {
        f"{CREDENTIALS}/web.yml": str(folder / "web.yml"),
        FOLDER: str(folder / "textfile"),
        ":9100": f"127.0.0.1:{port}",
    }
    given = words(texts[UNIT])[1:]
    for former, place in moved.items():
        assert sum(word.endswith(f"={former}") for word in given) == 1, former
        given = [word.removesuffix(former) + place if word.endswith(f"={former}") else word for word in given]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen([program("node_exporter"), *given], stdout=log, stderr=log)
    exporter = Exporter(folder, port, process)
    try:
        until(lambda: "TLS is enabled" in (folder / "log").read_text(), lambda: (folder / "log").read_text())
        yield exporter
    finally:
        process.terminate()
        process.wait(30)
