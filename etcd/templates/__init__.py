"""Templates of files for hosts of etcd members."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from cluster.spec import RoleName

USER = "etcd"


def unit_name(role: RoleName) -> str:
    """Return the name of the systemd unit of this etcd's member."""
    return f"etcd-{role}.service"


def render(template: str, **values: object) -> str:
    """Return the text of a template in this folder."""
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
