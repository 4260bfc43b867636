"""ansible-playbook without the seconds that its imports take: each run is a child of a process that has imported it.

The child is what the command is after its imports: same arguments, environment, folder, namespaces and streams, its own
workers, and the real modules in interpreters of their own. `words` is for a command line, on whatever host that runs.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import traceback
import warnings
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

_NAMESPACES = ("net", "mnt")
_FDS = 3 + len(_NAMESPACES)
_NO_ANSWER = 70


def words(environment: Mapping[str, str]) -> list[str]:
    """What stands for `ansible-playbook` on a command line. Its settings are those of `environment`, and none of its folder."""
    settings = {name: value for name, value in environment.items() if name.startswith(("ANSIBLE_", "LC_", "LANG"))}
    place, process = _server(tuple(sorted(settings.items())))
    assert process.poll() is None, f"the process that has imported Ansible has ended with {process.returncode}"
    return [sys.executable, "-IS", __file__, place]


@cache
def _server(settings: tuple[tuple[str, str], ...]) -> tuple[str, subprocess.Popen[bytes]]:
    """The socket of a process that has imported Ansible with these settings, and that process.

    It ends with this one. Its session is its own: a command under test that is interrupted here ends all children of ours.
    """
    place = str(Path(tempfile.mkdtemp(prefix="plays-")) / "socket")
    others = {name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")}
    process = subprocess.Popen(
        [sys.executable, "-P", __file__, "serve", place],
        env={**others, **dict(settings)}, cwd="/", stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        start_new_session=True,
    )  # fmt: skip
    assert process.stdin and process.stdout

    def end() -> None:
        process.stdin.close()  # type: ignore[union-attr]
        process.wait()

    atexit.register(end)
    assert process.stdout.readline() == b"ready\n", "ansible-playbook can't be imported"
    return place, process


def _serve(place: str) -> None:
    import selectors

    play = _imported()
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(place)
    listening.listen()
    print("ready", flush=True)
    both = selectors.DefaultSelector()
    for each in (sys.stdin, listening):
        both.register(each, selectors.EVENT_READ)
    while sys.stdin not in [key.fileobj for key, _ in both.select()]:
        connection, _ = listening.accept()
        if not os.fork():
            listening.close()
            _child(play, connection)
        connection.close()
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
    shutil.rmtree(Path(place).parent, ignore_errors=True)


def _imported() -> Any:
    """ansible-playbook's own class, with what each run would import and read of its plugins."""
    from ansible.cli.playbook import PlaybookCLI
    from ansible.executor import task_executor  # noqa: F401
    from ansible.executor.process import worker  # noqa: F401
    from ansible.plugins import loader

    warnings.filterwarnings("ignore", "AnsibleCollectionFinder has already been configured")
    loader.init_plugin_loader()
    kinds = (loader.become_loader, loader.callback_loader, loader.connection_loader, loader.inventory_loader)
    for kind in (*kinds, loader.shell_loader, loader.strategy_loader, loader.vars_loader):
        list(kind.all(class_only=True))
    return PlaybookCLI


def _child(play: Any, connection: socket.socket) -> None:
    code = 250
    try:
        _, fds, _, _ = socket.recv_fds(connection, 1, _FDS)
        asked = json.loads(connection.makefile("rb").readline())
        for number in range(3):
            os.dup2(fds[number], number)
        for fd in fds[3:]:
            _enter(fd)
        os.chdir(asked["folder"])
        os.environ.clear()
        os.environ.update(asked["environment"])
        sys.argv = asked["words"]
        try:
            play.cli_executor(asked["words"])
        except SystemExit as ended:
            code = int(ended.code or 0)
    except BaseException:  # noqa: BLE001 - told as text, and by the code
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        with contextlib.suppress(OSError):  # whoever asked may have been killed
            connection.sendall(bytes([code]))
        os._exit(code)  # what ends with the server stays: its temporary folder


def _enter(namespace: int) -> None:
    if ctypes.CDLL(None, use_errno=True).setns(namespace, 0):
        raise OSError(ctypes.get_errno(), "setns")


def _ask(place: str, words: list[str]) -> int:
    """Have it run here: in our namespaces and folder, with our environment and streams. Its exit code."""
    here = [os.open(f"/proc/self/ns/{kind}", os.O_RDONLY) for kind in _NAMESPACES]
    asked = {"words": ["ansible-playbook", *words], "folder": os.getcwd(), "environment": dict(os.environ)}
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(place)
        socket.send_fds(connection, [b" "], [0, 1, 2, *here])
        connection.sendall(json.dumps(asked).encode() + b"\n")
        return (connection.recv(1) or bytes([_NO_ANSWER]))[0]


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        _serve(sys.argv[2])
    else:
        sys.exit(_ask(sys.argv[1], sys.argv[2:]))
