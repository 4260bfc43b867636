"""`show outputs`: the outputs of a built cluster's stack."""

from __future__ import annotations

from cli.output import print_json
from cli.specs import checked


def show(name: str, *, as_json: bool) -> None:
    """Print the outputs as JSON, with and without --json."""
    cluster = checked(name)
    from cli.look import built
    from operations.stack import access_to

    print_json(access_to(built(cluster)).outputs.model_dump(mode="json"))
