"""Run ansible-playbook without the seconds of its imports: each run is a child of a process that has already imported it.

The child is in the same state as the command after its imports: same arguments, environment, folder, namespaces and streams,
its own workers, and the real modules in their own interpreters. Use `words` in a command line, on any host.
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
    """Return the words that replace `ansible-playbook` in a command. Settings come only from `environment`, not its folder."""
    settings = {name: value for name, value in environment.items() if name.startswith(("ANSIBLE_", "LC_", "LANG"))}
    place, process = _server(tuple(sorted(settings.items())))
    assert process.poll() is None, f"the process that has imported Ansible has exited with {process.returncode}"
    return [sys.executable, "-IS", __file__, place]


@cache
def _server(settings: tuple[tuple[str, str], ...]) -> tuple[str, subprocess.Popen[bytes]]:
    """Start a process that has imported Ansible with these settings. Return its socket, and the process.

    It ends with this process. It has its own session: an interrupted command under test ends all our other children.
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
    selector = selectors.DefaultSelector()
    for source in (sys.stdin, listening):
        selector.register(source, selectors.EVENT_READ)
    while sys.stdin not in [key.fileobj for key, _ in selector.select()]:
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
    """Return ansible-playbook's class, after importing what each run would import, including its plugins."""
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
        request = json.loads(connection.makefile("rb").readline())
        for number in range(3):
            os.dup2(fds[number], number)
        for fd in fds[3:]:
            _enter(fd)
        os.chdir(request["folder"])
        os.environ.clear()
        os.environ.update(request["environment"])
        sys.argv = request["words"]
        try:
            play.cli_executor(request["words"])
        except SystemExit as exit_:
            code = int(exit_.code or 0)
    except BaseException:  # noqa: BLE001 - reported as text, and by the exit code
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        with contextlib.suppress(OSError):  # the caller may have been killed
            connection.sendall(bytes([code]))
        os._exit(code)  # skips clean-up that belongs to the server, such as its temporary folder


def _enter(namespace: int) -> None:
    if ctypes.CDLL(None, use_errno=True).setns(namespace, 0):
        raise OSError(ctypes.get_errno(), "setns")


def _ask(place: str, words: list[str]) -> int:
    """Run a playbook in our namespaces and folder, with our environment and streams. Return its exit code."""
    namespaces = [os.open(f"/proc/self/ns/{kind}", os.O_RDONLY) for kind in _NAMESPACES]
    request = {"words": ["ansible-playbook", *words], "folder": os.getcwd(), "environment": dict(os.environ)}
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(place)
        socket.send_fds(connection, [b" "], [0, 1, 2, *namespaces])
        connection.sendall(json.dumps(request).encode() + b"\n")
        return (connection.recv(1) or bytes([_NO_ANSWER]))[0]


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        _serve(sys.argv[2])
    else:
        sys.exit(_ask(sys.argv[1], sys.argv[2:]))
