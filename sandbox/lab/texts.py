"""The configuration files of the lab, from `sandbox/lab/templates`."""

from __future__ import annotations

from jinja2 import Environment, PackageLoader, StrictUndefined

_TEMPLATES = Environment(
    loader=PackageLoader("sandbox.lab"),
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    autoescape=False,
    keep_trailing_newline=True,
)


def render(template: str, **values: object) -> str:
    """Return the text of a template. Raises jinja2.UndefinedError when it needs a value that is missing."""
    return _TEMPLATES.get_template(template).render(values)
