"""What every model of a spec is: strict, frozen, and closed to unknown keys."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Model(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True, extra="forbid", use_attribute_docstrings=True)
