"""``python -m cli``: what the executable at the root of the checkout runs."""

from cli.main import app

app(prog_name="menagerie")
