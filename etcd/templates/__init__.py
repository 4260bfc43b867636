"""Templates of files on hosts of etcd members."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from cluster.spec import RoleName

USER = "etcd"


def unit_name(role: RoleName) -> str:
    """The systemd unit of a member of this etcd."""
    return f"etcd-{role}.service"


def render(template: str, **values: object) -> str:
    """The text of a template of this folder."""
    return _environment().get_template(template).render(**values)


@cache
def _environment() -> Environment:
    return Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        undefined=StrictUndefined,
        trim_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )
