"""Base class of all models of a spec: strict, frozen, and without unknown keys. Docstrings below fields describe them."""

from __future__ import annotations

import ast
import inspect
import textwrap
from itertools import pairwise
from typing import Any

from pydantic import BaseModel, ConfigDict, GetJsonSchemaHandler
from pydantic_core import CoreSchema


class Described:
    """Mixin of a model: its JSON Schema describes each field by the docstring below it.

    pydantic's `use_attribute_docstrings` does so too, but it parses the source of every class at each start of the command.
    """

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler, /) -> dict[str, Any]:
        definition = handler(core_schema)
        properties = handler.resolve_ref_schema(definition).get("properties", {})
        for field, text in field_docstrings(cls).items():
            if field in properties:
                properties[field]["description"] = text
        return definition


class Model(Described, BaseModel):
    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")


def field_docstrings(model: type) -> dict[str, str]:
    """Return the docstrings of a model's fields, by field; those that it inherits, too."""
    texts: dict[str, str] = {}
    for holder in reversed(model.__mro__):
        if issubclass(holder, BaseModel) and holder is not BaseModel:
            texts |= _own_docstrings(holder)
    return texts


def _own_docstrings(holder: type) -> dict[str, str]:
    (declaration,) = ast.parse(textwrap.dedent(inspect.getsource(holder))).body
    assert isinstance(declaration, ast.ClassDef)
    return {
        field.target.id: inspect.cleandoc(text.value.value)
        for field, text in pairwise(declaration.body)
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and isinstance(text, ast.Expr)
        and isinstance(text.value, ast.Constant)
        and isinstance(text.value.value, str)
    }
