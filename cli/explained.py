"""`explain`: the meaning of a code of `check`, or of a failure."""

from __future__ import annotations

import typer
from rich.text import Text

from cli import exits, failure_codes
from cli.output import console, print_json
from cluster.codes import MEANING
from cluster.fields import did_you_mean


def explain(code: str | None, *, as_json: bool) -> None:
    """Print the meaning of one code, or of all."""
    meanings = {**{name: (exits.BAD_INPUT, text) for name, text in MEANING.items()}, **failure_codes.MEANING}
    if code is None:
        selected = meanings
    else:
        name = code.upper() if code.upper() in meanings else code.lower()
        if name not in meanings:
            raise typer.BadParameter(
                f"there is no code {code}{did_you_mean(name, list(meanings))}; `explain` lists all"
            )
        selected = {name: meanings[name]}
    if as_json:
        rows = [{"code": name, "exit_code": exit_code, "text": text} for name, (exit_code, text) in selected.items()]
        print_json({"codes": rows})
        return
    for name, (exit_code, text) in selected.items():
        console.print(
            Text.assemble((name, "bold"), f"  exit code {exit_code}" if name in failure_codes.MEANING else "")
        )
        console.print(Text(f"  {text}"))
