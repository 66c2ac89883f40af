"""Architectures of published models, by name, for tests."""

from __future__ import annotations

from catalog.model_files import find_model
from planner.engine.model_arch import ModelArch


def published(name: str) -> ModelArch:
    """The catalog's architecture; a test that names an unknown model is wrong."""
    arch = find_model(name)
    assert arch is not None, name
    return arch
