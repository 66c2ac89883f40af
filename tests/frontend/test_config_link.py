"""A config.json packed into a link and back."""

from __future__ import annotations

import json
import zlib
from base64 import urlsafe_b64encode
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontend.config_link import (
    MAX_JSON_BYTES,
    MAX_PACKED_CHARS,
    ConfigRefused,
    pack_config,
    read_config,
    unpack_config,
)

CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 8192,
    "num_attention_heads": 64,
    "num_hidden_layers": 80,
    "rope_scaling": {"type": "longrope", "factor": 8.0, "long_factor": [1.0] * 64},
    "id2label": {str(n): f"LABEL_{n}" for n in range(1000)},
}


def test_what_no_size_follows_from_is_dropped_and_the_rest_comes_back() -> None:
    packed = pack_config(CONFIG)
    assert len(packed) < 300
    assert unpack_config(packed) == {
        "architectures": ["LlamaForCausalLM"],
        "hidden_size": 8192,
        "num_attention_heads": 64,
        "num_hidden_layers": 80,
        "rope_scaling": {"type": "longrope", "factor": 8.0},
    }


def test_packing_is_stable_so_that_a_link_stays_the_same() -> None:
    assert pack_config(CONFIG) == pack_config(unpack_config(pack_config(CONFIG)))
    assert pack_config(CONFIG) == pack_config(dict(reversed(CONFIG.items())))


def test_plain_json_is_read_too() -> None:
    assert unpack_config('{"hidden_size": 1}') == {"hidden_size": 1}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[1]", "Not a JSON object."),
        ("{", "Not valid JSON"),
        ('{"a": NaN}', "Not valid JSON"),
        ("[" * 100_000, "Not valid JSON"),
        ("x" * (MAX_JSON_BYTES + 1), "Too long."),
    ],
)
def test_what_is_no_config_is_refused_with_a_reason(text: str, message: str) -> None:
    with pytest.raises(ConfigRefused, match=message) as refused:
        read_config(text)
    assert refused.value.as_field_error().field == "config"
    assert refused.value.as_field_error().allowed


def test_a_bomb_is_not_inflated() -> None:
    bomb = urlsafe_b64encode(zlib.compress(b" " * 50_000_000, 9)).decode()
    with pytest.raises(ConfigRefused, match="cut short or too long"):
        unpack_config(bomb)


def test_a_config_too_long_for_a_link_says_how_long_it_may_be() -> None:
    noisy = {str(n): str(hash((n, "x"))) for n in range(3000)}
    with pytest.raises(ConfigRefused) as refused:
        pack_config(noisy)
    assert str(MAX_PACKED_CHARS) in refused.value.allowed


def test_deep_nesting_is_refused() -> None:
    deep: dict[str, object] = {}
    for _ in range(10):
        deep = {"a": deep}
    with pytest.raises(ConfigRefused, match="Nested too deeply"):
        pack_config(json.loads(json.dumps(deep)))


@given(st.text(max_size=60))
def test_no_text_breaks_unpacking(text: str) -> None:
    with suppress(ConfigRefused):
        assert isinstance(unpack_config(text), dict)
