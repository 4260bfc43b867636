"""docs/reference/cli.md: every verb of the command with its help, arguments, options and examples, from the Typer app."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from typer.core import TyperGroup
from typer.main import get_command

from cli import main
from tests.reference import markdown

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "cli.md"
_HEAD = """\
# Commands

For operators: every verb of `./menagerie`, with its arguments, options and examples. `make golden` writes this page from
the command itself; `./menagerie VERB --help` prints the same.
"""
_TYPES = {int: "NUMBER", float: "NUMBER", str: "TEXT", Path: "FILE"}


def rendered() -> str:
    """Return the text of the page."""
    top = get_command(main.app)
    verbs = list(_verbs(top, ()))
    rows = [(_link(words), markdown.prose(_first(verb))) for words, verb in verbs if not isinstance(verb, TyperGroup)]
    examples, codes = _epilog(top)
    parts = [_HEAD, markdown.table(("verb", "what it does"), rows), _examples(examples), _exit_codes(codes)]
    parts += ["## Options of every verb\n", _parameters(top)]
    for words, verb in verbs:
        parts += list(_section(words, verb))
    return "\n".join(parts)


def _verbs(group: Any, words: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield verbs and groups of verbs by name, a group before its verbs."""
    for name, command in sorted(group.commands.items()):
        yield (*words, name), main.command(command.verb) if hasattr(command, "verb") else command
        if isinstance(command, TyperGroup):
            yield from _verbs(command, (*words, name))


def _link(words: tuple[str, ...]) -> str:
    return f"[{' '.join(words)}](#{'-'.join(words)})"


def _first(verb: Any) -> str:
    return str(verb.help).split("\n\n")[0]


def _section(words: tuple[str, ...], verb: Any) -> Iterator[str]:
    yield f"{'##' if len(words) == 1 else '###'} {' '.join(words)}\n"
    for paragraph in str(verb.help).split("\n\n"):
        yield f"{markdown.prose(paragraph)}\n"
    if not isinstance(verb, TyperGroup):
        yield f"```\n{_usage(words, verb)}\n```\n"
        yield from filter(None, (_parameters(verb), _examples(_epilog(verb)[0])))


def _usage(words: tuple[str, ...], verb: Any) -> str:
    arguments = [_metavar(parameter) for parameter in verb.params if _is_argument(parameter)]
    options = [] if all(map(_is_argument, verb.params)) else ["[OPTIONS]"]
    return " ".join(["./menagerie", *words, *arguments, *options])


def _is_argument(parameter: Any) -> bool:
    return bool(parameter.param_type_name == "argument")


def _metavar(parameter: Any) -> str:
    """Return the placeholder for the value; "" for a flag."""
    if getattr(parameter, "is_flag", False):
        return ""
    if not _is_argument(parameter):
        return str(parameter.metavar or _TYPES.get(parameter.type_descriptor.annotation, "VALUE"))
    word = f"{parameter.metavar or parameter.name.upper()}{'...' if parameter.nargs == -1 else ''}"
    return word if parameter.required else f"[{word}]"


def _parameters(verb: Any) -> str:
    rows = [_row(parameter) for parameter in verb.params if not getattr(parameter, "hidden", False)]
    return markdown.table(("argument or option", "default", "meaning"), rows) if rows else ""


def _row(parameter: Any) -> tuple[str, ...]:
    names = [_metavar(parameter)] if _is_argument(parameter) else _spellings(parameter)
    default = "required" if parameter.required else _default(parameter.default)
    return (", ".join(map(markdown.code, names)), default, markdown.prose(parameter.help or "") + _more(parameter))


def _spellings(parameter: Any) -> list[str]:
    """Return the spellings of an option: `--limit HOSTS`, `-y`, and `--no-…` if it exists."""
    return [f"{name} {_metavar(parameter)}".rstrip() for name in (*parameter.opts, *parameter.secondary_opts)]


def _default(value: Any) -> str:
    return "" if value in (None, False, (), []) else markdown.code(str(value))


def _more(parameter: Any) -> str:
    repeated = " May be given more than once." if getattr(parameter, "multiple", False) else ""
    return repeated + (f" Also set by the environment variable `{parameter.envvar}`." if parameter.envvar else "")


def _epilog(verb: Any) -> tuple[str, str]:
    """Return the examples and the text after them."""
    examples, _, rest = (verb.epilog or "").replace("\\[", "[").partition("\n\n")
    return examples.partition("\n")[2], rest


def _examples(text: str) -> str:
    return f"```\n{text}\n```\n"


def _exit_codes(text: str) -> str:
    return f"## Exit codes\n\n{markdown.prose(text.removeprefix('Exit codes: '))}\n"
