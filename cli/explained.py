"""`explain`: what stands behind a code of `check`, and behind the code of a failure."""

from __future__ import annotations

import typer
from rich.text import Text

from cli import exits, failure_codes
from cli.output import console, print_json
from cluster.codes import MEANING
from cluster.fields import did_you_mean


def explain(code: str | None, *, as_json: bool) -> None:
    """One code, or all of them."""
    known = {**{name: (exits.BAD_INPUT, text) for name, text in MEANING.items()}, **failure_codes.MEANING}
    if code is None:
        shown = known
    else:
        name = code.upper() if code.upper() in known else code.lower()
        if name not in known:
            raise typer.BadParameter(f"there is no code {code}{did_you_mean(name, list(known))}; `explain` lists all")
        shown = {name: known[name]}
    if as_json:
        rows = [{"code": name, "exit_code": exit_code, "text": text} for name, (exit_code, text) in shown.items()]
        print_json({"codes": rows})
        return
    for name, (exit_code, text) in shown.items():
        console.print(
            Text.assemble((name, "bold"), f"  exit code {exit_code}" if name in failure_codes.MEANING else "")
        )
        console.print(Text(f"  {text}"))
