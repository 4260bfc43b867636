"""Base class of all models of a spec: strict, frozen, and without unknown keys."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Model(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True, extra="forbid", use_attribute_docstrings=True)
