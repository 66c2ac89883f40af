"""The folder of compiled code follows its sources."""

from __future__ import annotations

from pathlib import Path

import pytest

from planner.compiled_cache import compiled_cache_folder


def _engine(folder: Path) -> Path:
    engine = folder / "engine"
    (engine / "simulate").mkdir(parents=True)
    (engine / "step_time.py").write_text("a = 1\n", encoding="utf-8")
    (engine / "simulate" / "kernel.py").write_text("from simulate.compiled import entry\n", encoding="utf-8")
    (engine / "simulate" / "layout.py").write_text("c = 1\n", encoding="utf-8")
    (engine / "simulate" / "traffic.py").write_text("d = 1\n", encoding="utf-8")
    return engine


def test_same_sources_same_folder(tmp_path: Path) -> None:
    engine = _engine(tmp_path)
    assert compiled_cache_folder(tmp_path, engine) == compiled_cache_folder(tmp_path, engine)
    assert compiled_cache_folder(tmp_path, engine).parent == tmp_path


@pytest.mark.parametrize("name", ["step_time.py", "simulate/kernel.py", "simulate/layout.py"])
def test_a_changed_source_changes_it(tmp_path: Path, name: str) -> None:
    engine = _engine(tmp_path)
    before = compiled_cache_folder(tmp_path, engine)
    with (engine / name).open("a", encoding="utf-8") as stream:
        stream.write("e = 1\n")
    assert compiled_cache_folder(tmp_path, engine) != before


def test_what_is_not_compiled_does_not(tmp_path: Path) -> None:
    engine = _engine(tmp_path)
    before = compiled_cache_folder(tmp_path, engine)
    (engine / "simulate" / "traffic.py").write_text("d = 2\n", encoding="utf-8")
    assert compiled_cache_folder(tmp_path, engine) == before
