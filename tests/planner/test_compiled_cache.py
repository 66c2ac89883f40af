"""The folder of compiled code follows its sources."""

from __future__ import annotations

from pathlib import Path

from planner.compiled_cache import compiled_cache_folder


def _engine(folder: Path) -> Path:
    engine = folder / "engine"
    (engine / "simulate").mkdir(parents=True)
    (engine / "step_time.py").write_text("a = 1\n", encoding="utf-8")
    (engine / "simulate" / "kernel.py").write_text("b = 1\n", encoding="utf-8")
    return engine


def test_same_sources_same_folder(tmp_path: Path) -> None:
    engine = _engine(tmp_path)
    assert compiled_cache_folder(tmp_path, engine) == compiled_cache_folder(tmp_path, engine)
    assert compiled_cache_folder(tmp_path, engine).parent == tmp_path


def test_a_changed_source_changes_it(tmp_path: Path) -> None:
    engine = _engine(tmp_path)
    before = compiled_cache_folder(tmp_path, engine)
    (engine / "step_time.py").write_text("a = 2\n", encoding="utf-8")
    between = compiled_cache_folder(tmp_path, engine)
    (engine / "simulate" / "kernel.py").write_text("b = 2\n", encoding="utf-8")
    after = compiled_cache_folder(tmp_path, engine)
    assert len({before, between, after}) == 3
