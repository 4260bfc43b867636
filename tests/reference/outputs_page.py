"""docs/reference/outputs.md: what a stack hands over, from the model in cluster/outputs.py."""

from __future__ import annotations

from pathlib import Path

from cluster.outputs import ClusterOutputs
from tests.reference.keys import Walk

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "outputs.md"
_HEAD = """\
# Outputs of a stack

For operators and for people who change Menagerie: what the stack of a cluster hands over to everything else, such as the
inventory and the verbs that reach the cluster. It is one JSON document, and has no secret. `make golden` writes this page
from `cluster/outputs.py`.

```
pulumi stack output outputs --stack jaguar
```

- Each `up` writes the outputs again.
- An older checkout ignores fields that it does not know. It refuses a newer `version`, and with it whatever would change
  the stack.
- `<etcd>` is `main` or `events`, `<use>` is the use of a bucket. `[]` stands for each entry of a list.
"""
_ENTRIES = {"etcds": ("etcd",), "buckets": ("use",)}


def rendered() -> str:
    """Return the text of the page."""
    schema = ClusterOutputs.model_json_schema()
    first, *rest = Walk(schema.pop("$defs"), (), _ENTRIES).sections(schema)
    return "\n".join(
        [_HEAD, first.text("## The document"), *(section.text(f"## `{section.path}`") for section in rest)]
    )
