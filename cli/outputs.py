"""`show outputs`: what the stack of a built cluster hands over."""

from __future__ import annotations

from cli.output import print_json
from cli.specs import checked


def show(name: str, *, as_json: bool) -> None:
    """A document in either case."""
    cluster = checked(name)
    from cli.look import built
    from operations.stack import access_to

    print_json(access_to(built(cluster)).outputs.model_dump(mode="json"))
