"""What a question asks for beyond the measured cases, said where its answer is read; and what can't be asked."""

from __future__ import annotations

from collections.abc import Iterator

from planner.engine.advice import Advice
from planner.engine.engine_support import PLAIN_CACHE, EngineSupport
from planner.engine.errors import FieldError, InvalidQuestion
from planner.engine.model_arch import ModelArch
from planner.engine.param_count import count_parameters
from planner.engine.sentences import Code, say
from planner.engine.serving_regimes import lora_slots
from planner.engine.speculation import tokens_per_step
from planner.engine.workload import InferenceQuestion

LONG_ANSWER = 20
"""Tokens of an answer from which decodes hold so many iterations that the state changes often: both are averaged."""
VOCABULARY_SLACK = 0.02
"""Vocabularies are padded differently; a larger difference is another tokenizer."""


def check_regimes(arch: ModelArch, question: InferenceQuestion, draft: ModelArch | None = None) -> None:
    """Raise ``InvalidQuestion`` for settings that this model can't have; ``draft`` is the draft model named."""
    has_experts = any(group.kind == "moe" for group in arch.ffn)
    tokens = question.input_tokens + question.output_tokens
    errors = []
    if question.attention_ranks == "data" and not has_experts:
        errors.append(_fault("attention_ranks", "data", say("The model has no experts."), "auto, tensor"))
    if question.redundant_experts and not has_experts:
        errors.append(_fault("redundant_experts", question.redundant_experts, say("The model has no experts."), "0"))
    elif question.redundant_experts and question.expert_parallel == 1:
        message = say("Copies of experts need ranks to spread over.")
        errors.append(_fault("redundant_experts", question.redundant_experts, message, say("0, or expert ranks")))
    if question.max_model_len is not None and question.max_model_len < tokens:
        message = say("Input and output together are {tokens:,} tokens.", tokens=tokens)
        errors.append(
            _fault("max_model_len", question.max_model_len, message, say("{tokens:,} or more", tokens=tokens))
        )
    if draft is not None:
        errors += _draft_faults(arch, question, draft)
    if errors:
        raise InvalidQuestion(errors)


def check_cache(question: InferenceQuestion, support: EngineSupport) -> None:
    """Raise ``InvalidQuestion`` for a KV cache in a format that the engine doesn't have."""
    if not support.knows_cache(question.kv_format):
        message = say("{engine} has no KV cache in this format.", engine=Code(question.engine))
        allowed = ", ".join((*PLAIN_CACHE, *support.kv_formats))
        raise InvalidQuestion([_fault("kv_format", question.kv_format, message, allowed)])


def _draft_faults(arch: ModelArch, question: InferenceQuestion, draft: ModelArch) -> Iterator[FieldError]:
    """A draft's tokens are the model's own, and cost less."""
    if abs(draft.vocab / arch.vocab - 1.0) > VOCABULARY_SLACK:
        message = say(
            "Its vocabulary of {draft:,} is not the model's {model:,}: its tokens can't be verified.",
            draft=draft.vocab,
            model=arch.vocab,
        )
        yield _fault("draft_model", question.draft_model, message, say("a model with the same tokenizer"))
    ours, theirs = count_parameters(arch).active, count_parameters(draft).active
    if theirs >= ours:
        message = say(
            "It has {draft:.3g} B active parameters, the model {model:.3g} B: drafting would cost more than it saves.",
            draft=theirs / 1e9,
            model=ours / 1e9,
        )
        yield _fault("draft_model", question.draft_model, message, say("a smaller model"))


def _fault(field: str, value: object, message: str, allowed: str) -> FieldError:
    return FieldError(field=field, value=value, message=message, allowed=allowed, code="conflict")


def beyond_measured(question: InferenceQuestion, arch: ModelArch) -> tuple[str, ...]:
    """What of the question no measured case has: reasons to call its figures extrapolated."""
    return tuple(_beyond(question, arch))


def _beyond(question: InferenceQuestion, arch: ModelArch) -> Iterator[str]:
    if arch.unknown_type:
        yield say("model_type {kind}", kind=arch.unknown_type)
    if question.speculation != "none":
        yield say("speculative decoding")
    if question.lora_adapters:
        yield say("LoRA adapters")
    if question.batching != "continuous":
        yield say("drained batches")
    if question.expert_imbalance > 1.0 or question.redundant_experts:
        yield say("expert imbalance")
    if question.attention_ranks == "data" and not any(group.kind == "mla" for group in arch.attention):
        yield say("data-parallel attention without latents")


def captured_prompts(question: InferenceQuestion, graph_tokens: float) -> tuple[Advice, ...]:
    """A remark where one prompt fits the largest captured graph (``graph_tokens``) and several don't: nothing but the
    simulator tells which of two states an engine stays in."""
    prompt = question.input_tokens * (1.0 - question.prefix_cache_hit)
    waits = question.concurrency is None and question.offline_requests is None and question.batching == "continuous"
    if not waits or question.output_tokens >= LONG_ANSWER or prompt > graph_tokens:
        return ()
    said = say(
        "Prompts of {prompt:,.0f} tokens fit a captured graph of {graph:,.0f} tokens one by one, but not several at "
        "once: an engine that falls behind can stay in a slower state, with several times these latencies. Simulate "
        "the plan before you rely on them.",
        prompt=prompt,
        graph=graph_tokens,
    )
    return (Advice(field="", suggestion=said),)


def regime_assumptions(question: InferenceQuestion, arch: ModelArch) -> list[str]:
    """What the answer rests on beside a plain question's assumptions."""
    return list(_assumptions(question, arch))


def _assumptions(question: InferenceQuestion, arch: ModelArch) -> Iterator[str]:
    if question.speculation == "mtp" and not arch.mtp_params:
        yield say(
            "No multi-token prediction layer of {model} is known: its drafts are timed as one layer like its last. "
            "Without such a layer in the checkpoint the engine can't draft this way.",
            model=arch.name,
        )
    if question.speculation == "eagle":
        yield say("EAGLE drafts with a layer that was trained for this model; it isn't part of the checkpoint.")
    if question.speculation != "none":
        yield say(
            "Speculative decoding ({kind}): {drafts} tokens drafted a step, each kept with probability "
            "{acceptance:g} where those before it were: {tokens:.2f} tokens a step.",
            kind=Code(question.speculation),
            drafts=question.draft_tokens,
            acceptance=question.draft_acceptance,
            tokens=tokens_per_step(question.draft_acceptance, question.draft_tokens),
        )
    if question.lora_adapters:
        yield say(
            "{adapters:,} LoRA adapters of rank {rank} on every linear layer but routed experts, asked for alike; "
            "{slots} kept on the GPU.",
            adapters=question.lora_adapters,
            rank=question.lora_rank,
            slots=lora_slots(question),
        )
    if question.prefix_cache_hit:
        kind = (
            say("Cached prompt tokens are whole blocks of one prefix, held once.")
            if question.prefix_kind == "shared"
            else say("Cached prompt tokens are whole blocks of each client's own.")
        )
        yield kind
    if question.pools != "together":
        yield say(
            "Split pools: prompts prefill on replicas of their own, their KV goes to the decoding side before the "
            "first token counts; both pools are sized and billed."
        )
    if question.batching == "static":
        yield say("A static batch waits until it is full, and lasts as long as its longest answer.")
    if question.batching == "dynamic":
        yield say(
            "A dynamic batch takes what has come, waits {delay:g} ms at most for company, and lasts as long as its "
            "longest answer.",
            delay=question.batch_delay_ms,
        )
    if question.offline_requests is not None:
        yield say(
            "{requests:,} requests are queued at once and done within {hours:g} h, headroom kept; waits don't count.",
            requests=question.offline_requests,
            hours=question.offline_hours,
        )
    if question.expert_imbalance > 1.0:
        yield say(
            "The busiest expert rank has {imbalance:g} times the mean work, and all ranks wait for it.",
            imbalance=question.expert_imbalance,
        )
