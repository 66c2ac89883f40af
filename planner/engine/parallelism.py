"""Which layouts a model can be split into, and why another one can't.

Rules (as serving and training engines assert them): tensor-parallel ranks divide the attention heads; KV heads
divide the ranks or the ranks the KV heads (then heads are replicated); they divide every MLP width, and what is
left must be whole quantization blocks; expert-parallel ranks divide the experts, further copies included; no more
pipeline stages than layers.
"""

from __future__ import annotations

from planner.engine.errors import FieldError
from planner.engine.model_arch import AttentionGroup, ModelArch
from planner.engine.quantization import resolve_format
from planner.engine.sentences import joined, say

LISTED_SIZES = 16
"""Valid sizes an error lists at most."""


def valid_tensor_parallel(arch: ModelArch, limit: int, weight_format: str | None = None) -> tuple[int, ...]:
    """Tensor-parallel sizes up to ``limit`` that the heads allow and, given a format, the MLP widths too.

    >>> from planner.engine.model_arch import AttentionGroup, FfnGroup, ModelArch
    >>> qwen = ModelArch(name="q", hidden=3584, layers=28, vocab=152064,
    ...     attention=(AttentionGroup(kind="full", layers=28, n_q=28, n_kv=4, head_dim=128),),
    ...     ffn=(FfnGroup(kind="dense", layers=28, intermediate=18944),))
    >>> valid_tensor_parallel(qwen, 64)
    (1, 2, 4, 28)
    """
    # More ranks than heads never divide them.
    most = min((group.n_q for group in arch.attention if group.n_q), default=limit)
    return tuple(
        tp
        for tp in range(1, min(limit, most) + 1)
        if all(_splits_heads(group, tp) for group in arch.attention)
        and (weight_format is None or not _tensor_faults(arch, tp, 1, weight_format))
    )


def splits_experts(arch: ModelArch, ep: int, copies: int = 0) -> bool:
    """Whether the experts of every layer, with ``copies`` further ones, spread evenly over ``ep`` ranks.

    DeepSeek-V3's service: (256 + 32) / 144 = 2 on a rank.

    >>> from planner.engine.model_arch import FfnGroup, ModelArch
    >>> moe = ModelArch(name="m", hidden=8, layers=1, vocab=8, attention=(),
    ...     ffn=(FfnGroup(kind="moe", layers=1, intermediate=8, experts=256, top_k=8),))
    >>> splits_experts(moe, 144), splits_experts(moe, 144, copies=32), splits_experts(moe, 128, copies=32)
    (False, True, False)
    """
    experts = [group.experts for group in arch.ffn if group.kind == "moe"]
    return ep == 1 or (bool(experts) and all((count + copies) % ep == 0 for count in experts))


def valid_expert_parallel(arch: ModelArch, limit: int, copies: int = 0) -> tuple[int, ...]:
    """Expert-parallel sizes up to ``limit``: divisors of every layer's experts and copies; only 1 without experts.

    >>> from planner.engine.model_arch import FfnGroup, ModelArch
    >>> moe = ModelArch(name="m", hidden=8, layers=1, vocab=8, attention=(),
    ...     ffn=(FfnGroup(kind="moe", layers=1, intermediate=8, experts=256, top_k=8),))
    >>> valid_expert_parallel(moe, 16)
    (1, 2, 4, 8, 16)
    """
    return tuple(ep for ep in range(1, limit + 1) if splits_experts(arch, ep, copies))


def check_layout(
    arch: ModelArch, *, tp: int, pp: int = 1, ep: int = 1, copies: int = 0, weight_format: str | None = "auto"
) -> list[FieldError]:
    """Every reason why the layout can't work, each with the sizes that can; empty where it works.

    ``copies`` are redundant experts. Without a weight format the MLP widths are not judged.
    """
    errors = []
    faults = _tensor_faults(arch, tp, ep, weight_format)
    if faults:
        valid = tuple(
            size for size in range(1, 4 * max(tp, 8) + 1) if not _tensor_faults(arch, size, ep, weight_format)
        )
        errors.append(_error("tensor_parallel", tp, joined(faults), valid))
    experts = [group.experts for group in arch.ffn if group.kind == "moe"]
    if ep > 1 and not experts:
        errors.append(_error("expert_parallel", ep, say("The model has no experts."), (1,)))
    elif not splits_experts(arch, ep, copies):
        message = say("{experts} experts are not divisible by {size}.", experts=min(experts), size=ep)
        if copies:
            message = say(
                "{experts} experts and {copies} copies are not divisible by {size}.",
                experts=min(experts),
                copies=copies,
                size=ep,
            )
        errors.append(
            _error("expert_parallel", ep, message, valid_expert_parallel(arch, max(experts) + copies, copies))
        )
    elif ep > 1 and ep % tp and tp % ep:
        message = say("Expert groups of {ep} ranks don't align with tensor groups of {tp}.", ep=ep, tp=tp)
        errors.append(
            _error(
                "expert_parallel", ep, message, tuple(s for s in valid_expert_parallel(arch, 64, copies) if s % tp == 0)
            )
        )
    if pp > arch.layers:
        message = say("{stages} stages for {layers} layers.", stages=pp, layers=arch.layers)
        errors.append(_error("pipeline_parallel", pp, message, tuple(range(1, arch.layers + 1))))
    return errors


def _error(field: str, value: int, message: str, valid: tuple[int, ...]) -> FieldError:
    listed = ", ".join(str(size) for size in valid[:LISTED_SIZES])
    more = ", ..." if len(valid) > LISTED_SIZES else ""
    return FieldError(field=field, value=value, message=message, allowed=listed + more, code="invalid_layout")


def _tensor_faults(arch: ModelArch, tp: int, ep: int, weight_format: str | None) -> list[str]:
    """Why the model can't be split over ``tp`` ranks; widths are judged only where a format is given."""
    faults = [fault for group in arch.attention for fault in _head_faults(group, tp)]
    if weight_format is not None:
        faults += width_faults(arch, tp, ep, weight_format)
    return list(dict.fromkeys(faults))


def _splits_heads(group: AttentionGroup, tp: int) -> bool:
    """As ``_head_faults``, where only the answer is wanted."""
    return group.n_q % tp == 0 and (not group.n_kv or group.n_kv % tp == 0 or tp % group.n_kv == 0)


def _head_faults(group: AttentionGroup, tp: int) -> list[str]:
    if group.n_q and group.n_q % tp:
        return [say("{heads} attention heads are not divisible by {size}.", heads=group.n_q, size=tp)]
    if group.n_kv and group.n_kv % tp and tp % group.n_kv:
        return [
            say(
                "{heads} key-value heads can be neither split over nor repeated on {size} ranks.",
                heads=group.n_kv,
                size=tp,
            )
        ]
    return []


def width_faults(arch: ModelArch, tp: int, ep: int, format_name: str) -> list[str]:
    """Why the MLP widths can't be split over ``tp`` ranks in this format; experts in groups of ``ep`` stay whole."""
    weight_format = resolve_format(arch, format_name)
    faults: list[str] = []
    for group in arch.ffn:
        widths = {group.shared_intermediate} if group.kind == "moe" else {group.intermediate}
        if group.kind == "moe" and ep == 1:
            widths.add(group.intermediate)
        module = "experts" if group.kind == "moe" else "mlp"
        block = weight_format.block if module in weight_format.modules else 0
        for width in sorted(widths - {0}):
            if width % tp:
                faults.append(say("MLP width {width} is not divisible by {size}.", width=width, size=tp))
            elif block and tp > 1 and (width // tp) % block:
                faults.append(
                    say(
                        "MLP width {width} / {size} = {part} is no multiple of the quantization block {block}.",
                        width=width,
                        size=tp,
                        part=width // tp,
                        block=block,
                    )
                )
    return faults
