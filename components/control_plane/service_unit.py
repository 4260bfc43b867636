"""A systemd service of an API-server host, and the text of its file.

Users: CIS requires keys and kubeconfigs to be 0600 and owned by root. kube-apiserver and kube-controller-manager need nearly
all of them, so they run as root with an empty capability set: they can read root's files and write to two folders, and the
kernel grants nothing else. (systemd's LoadCredential= would copy the keys once, but the encryption keys are reloaded at
runtime.) The other programs need one or two files each: each runs as its own user and gets its files as credentials.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from cluster.files import Consumer
from components.control_plane import paths
from components.control_plane.flags import Flags

_HERE = Path(__file__).resolve().parent
CREDENTIALS = "${CREDENTIALS_DIRECTORY}"
PYTHON_PATH = f"Environment=PYTHONPATH={paths.LIBRARY}"


@dataclass(frozen=True)
class Unit:
    """A service. words: the command line before escaping; systemd expands ``${...}`` in it."""

    name: str
    description: str
    words: tuple[str, ...]
    type: str = "exec"
    documentation: str = "https://kubernetes.io/docs/reference/command-line-tools-reference/"
    user: str = ""
    groups: tuple[str, ...] = ()
    after: tuple[str, ...] = ("kubeadm-phases.service",)
    credentials: tuple[tuple[str, str], ...] = ()
    settings: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    processes: str = "invisible"
    """ProtectProc=: which processes of other users the service sees."""


def render(unit: Unit) -> str:
    """Return the text of the unit's file."""
    template = _environment().get_template("service.j2")
    values = {name: getattr(unit, name) for name in unit.__dataclass_fields__}
    return template.render(values | {"words": [_word(word) for word in unit.words]})


def python(module: str) -> tuple[str, ...]:
    """Return the command of one of Menagerie's own programs."""
    return ("/usr/bin/python3", "-sB", "-m", f"menagerie_host.{module}")


def standalone(module: str) -> tuple[str, ...]:
    """Return the command of one of Menagerie's own programs, for use outside its unit."""
    return ("/usr/bin/env", f"PYTHONPATH={paths.LIBRARY}", *python(module))


def command(program: str, flags: Flags) -> tuple[str, ...]:
    """Return the command of a downloaded program."""
    return (f"{paths.BIN}/{program}", *(f"--{name}={value}" for name, value in flags.items()))


def follower(name: str, module: str, account: str, description: str, page: str) -> Unit:
    """Return the unit of a Menagerie program that watches objects in the API. page: of kubernetes.io/docs.

    Its kubeconfig has its name. It reads objects that cluster-bootstrap creates, and retries until they exist.
    """
    return Unit(
        name=f"{name}.service",
        description=description,
        documentation=f"https://kubernetes.io/docs/{page}",
        words=python(module),
        user=account,
        after=("kube-apiserver.service",),
        credentials=(("kubeconfig", kubeconfig(name)),),
        settings=(PYTHON_PATH,),
    )


def kubeconfig(name: str) -> str:
    """Return the path of a program's kubeconfig."""
    return f"{paths.KUBERNETES}/{name}.conf"


def consumer(name: str) -> Consumer:
    """Return what a program must follow whose only changing file is its kubeconfig."""
    return Consumer(f"{name}.service", (kubeconfig(name),))


def _word(text: str) -> str:
    # systemd.service(5), "Command lines": % and \ are special, and a separate ; ends a command.
    escaped = text.replace("\\", "\\\\").replace("%", "%%").replace('"', '\\"')
    return f'"{escaped}"' if any(character in text for character in " \t';*") else escaped


@cache
def _environment() -> Environment:
    return Environment(
        loader=FileSystemLoader(_HERE / "templates"),
        undefined=StrictUndefined,
        trim_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )
