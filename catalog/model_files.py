"""The model architectures file: entries by name, alias and Hugging Face id, read once, without a database."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, TypeVar

from catalog.profiles import load_profile_file
from planner.engine.arch_spec import arch_from_spec
from planner.engine.model_arch import ModelArch

T = TypeVar("T")

MODELS_FILE = "model_architectures.json"


_VARIANTS = re.compile(
    r"(instruct|chat|it|base|hf|thinking|preview|dynamic|block|quantized(\.w\d+a\d+)?|\d{1,2}bits?|fp8|fp4|nvfp4"
    r"|mxfp4|mxfp8|fp16|bf16|int4|int8|awq|gptq|bnb|gguf|autoround|marlin|w4a16|w8a8|w8a16|w4a8|g128|2501|2503"
    r"|2506|2507|2509|2512|0324|0528|0905|bnb4bit)$"
)
"""Endings that name a tuning, a date or a repack of the same architecture."""
_WRITTEN = re.compile(r"[A-Za-z0-9 \t._+/\\:,()\[\]@'&~-]*")
"""What names are written with; a letter of another script that looks like one of these is another name."""


def model_key(name: str) -> str:
    """A name as it is looked up: lower case, without organization and punctuation.

    Numbers stay apart: 3.1 70B is not 3.17 0B.

    >>> model_key("meta-llama/Llama-3.1-8B") == model_key("llama3.1 8b")
    True
    """
    return _joined(_words(name))


def _joined(words: Sequence[str]) -> str:
    """Words without what separates them, but for two numbers."""
    key = words[0]
    for word in words[1:]:
        key += f"-{word}" if key[-1:].isdigit() and word[0].isdigit() else word
    return key


def architecture_key(name: str) -> str:
    """As ``model_key``, without the endings that leave the architecture as it is.

    >>> architecture_key("RedHatAI/Meta-Llama-3.1-70B-Instruct-quantized.w8a8")
    'llama3.1-70b'
    """
    words = _words(name)
    while len(words) > 1 and _VARIANTS.fullmatch(words[-1]):
        words.pop()
    return _joined(words[1:] if words[0] == "meta" and len(words) > 1 else words)


def _words(name: str) -> list[str]:
    plain = re.sub(r"(\d)-bit\b", r"\1bit", name.rsplit("/", 1)[-1].lower())
    words = re.split(r"[^a-z0-9.+]+", plain)
    return [word for word in words if word] or [""]


def index_names(named: Iterable[tuple[Iterable[str], T]]) -> dict[str, T]:
    """Look-up table from every name's keys to its entry; full names win over stripped ones."""
    entries = [(list(filter(None, names)), entry) for names, entry in named]
    index: dict[str, T] = {}
    for key in (model_key, architecture_key):
        for names, entry in entries:
            for name in names:
                index.setdefault(key(name), entry)
    return index


def look_up(index: Mapping[str, T], name: str) -> T | None:
    """The entry a name stands for: itself, or the model it is a repack or tuning of; nothing that looks like one."""
    if not _WRITTEN.fullmatch(name.strip()):
        return None
    return index.get(model_key(name)) or index.get(architecture_key(name))


@cache
def _index() -> Mapping[str, Mapping[str, Any]]:
    entries = load_profile_file(MODELS_FILE)["models"]
    return index_names(((entry["name"], entry["hf_id"], *entry["aliases"]), entry) for entry in entries)


def find_model(name: str) -> ModelArch | None:
    """The architecture a name, alias or Hugging Face id stands for, or None.

    A repack ("-FP8", "-AWQ") or tuning ("-Instruct") of a known model finds that model; a repack keeps the
    format its name states.
    """
    entry = look_up(_index(), name)
    return as_published(arch_from_spec(entry["spec"]), name) if entry else None


REPACKS = {
    "awq": "awq_int4",
    "gptq": "gptq_int4",
    "w4a16": "gptq_int4",
    "fp8": "fp8",
    "w8a8": "int8",
    "mxfp4": "mxfp4",
    "nvfp4": "nvfp4",
    "fp4": "nvfp4",
    "bnb": "nf4",
    "bnb4bit": "nf4",
    "gguf": "gguf_q4_k_m",
}
"""What the last words of a checkpoint's name say of its weights."""


def as_published(arch: ModelArch, name: str) -> ModelArch:
    """``arch`` in the weight format that ``name`` states, where it states one and the model's own name doesn't.

    >>> find_model("hugging-quants/Meta-Llama-3.1-70B-Instruct-AWQ-INT4").native_format
    'awq_int4'
    """
    stated = [REPACKS[word] for word in _words(name) if word in REPACKS]
    own = {REPACKS[word] for word in _words(arch.hf_id or arch.name) if word in REPACKS}
    if not stated or stated[-1] in own or stated[0] == arch.native_format:
        return arch
    return replace(arch, native_format=stated[0], quantized_modules="")
