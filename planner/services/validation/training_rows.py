"""Published training rows (the ``validate_engine training`` columns) as cases.

A blank input is unknown: what is assumed for it is listed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from planner.engine.hardware import Accelerator
from planner.engine.model_arch import ModelArch
from planner.engine.training.power import power_share
from planner.engine.training.profile import FrameworkProfile, TrainingProfiles
from planner.services.validation.training_case import TrainingCase, sixteen_bit_peak
from planner.services.validation.training_row_arch import Row, UnreadableRow, arch_from_columns, number, with_layers
from planner.services.validation.training_row_facts import (
    assume,
    grad_bytes_of,
    is_fused,
    layout_of,
    memory_measure_of,
    method_of,
    mtp_modules_of,
    network_of,
    offload_of,
    optimizer_of,
    precision_of,
    prose_of,
    recompute_modules_of,
    recompute_of,
    sequence_parallel_of,
    shard_group_of,
    sharding_of,
    topology_of,
    year_of,
)

FindModel = Callable[[str], ModelArch | None]
FindAccelerator = Callable[[str], Accelerator | None]

PACKED_LONG_DOCUMENTS = 1e12
DEFAULT_SEQUENCE = 4096
POWER_LIMITED = 0.75
"""Of nominal power, where a source says limited but not how far."""
MARKETING_GB_TO_BYTES = 1.069e9
"""Driver-visible bytes of a marketing GB on HBM cards (81,559 MiB for 80 GB)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowReader:
    """Reads rows with a catalog of models, accelerators and frameworks at hand."""

    find_model: FindModel
    find_accelerator: FindAccelerator
    profiles: TrainingProfiles
    framework_patterns: tuple[tuple[str, str], ...]
    """(pattern, framework key), first match wins."""
    framework_facts: Mapping[str, Mapping[str, object]]
    fallback_framework: str
    model_aliases: Mapping[str, str]
    long_documents: tuple[str, ...]
    """Patterns of data sets whose documents fill a packed sample."""
    mtp_models: Mapping[str, int]
    """Models that are trained with multi-token-prediction modules."""

    def read(self, row: Row) -> TrainingCase:
        """The case of one row; raises ``UnreadableRow``."""
        assumed: list[str] = []
        arch = self._arch(row)
        accelerator, memory_bytes, power_share = self._accelerator(row["gpu"])
        framework = self._framework(row, assumed)
        layout = layout_of(row, arch, framework, assumed)
        year = year_of(row.get("date", ""))
        precision = precision_of(row.get("precision", ""))
        method = method_of(row)
        sequence = int(number(row, "seq_len") or assume(assumed, "seq_len", DEFAULT_SEQUENCE))
        per_node, domain = topology_of(row, accelerator)
        facts = self.framework_facts[framework.key]
        notes = prose_of(row)
        if re.search(r"ladder: baseline\b.*unpacked baseline", notes):
            raise UnreadableRow("unpacked samples: seq_len is the longest, so the tokens of a step are not stated.")
        sharding = sharding_of(row, framework, layout["data"], assumed)
        return TrainingCase(
            arch=arch,
            accelerator=accelerator,
            memory_bytes=memory_bytes,
            power_share=power_share,
            gpus_per_node=per_node,
            link_domain_gpus=domain,
            network_bytes_s=network_of(row.get("network", ""), per_node, accelerator, assumed),
            framework=framework.key,
            year=year,
            precision=precision,
            method=method,
            optimizer=optimizer_of(row, str(facts["default_optimizer"])),
            sequence_length=sequence,
            document_tokens=self._document_tokens(row, method),
            sharding=sharding,
            shard_group=shard_group_of(notes, layout),
            recompute=recompute_of(row, method, framework, assumed),
            sequence_parallel=sequence_parallel_of(notes, year, facts),
            flash_attention=None,
            chunked_loss="chunked" in notes or ("cumulative ladder" in notes and row.get("recompute") == "full"),
            natural_routing="natural routing" in notes,
            mtp_modules=mtp_modules_of(notes, self.mtp_models, row["model"]),
            recompute_modules=recompute_modules_of(notes),
            fused=is_fused(notes, bool(facts["compiled"])),
            async_tensor=bool(re.search(r"async ?tp", notes)),
            dropout=year < self.profiles.frameworks[framework.key].flash_attention_since,
            grad_bytes=grad_bytes_of(facts, precision),
            lora_rank=16,
            offload=offload_of(notes),
            memory_measure=memory_measure_of(notes, str(facts["memory_measure"])),
            assumptions=tuple(assumed),
            **layout,
        )

    def _arch(self, row: Row) -> ModelArch:
        """The catalog's architecture where the row means it, else the row's own columns."""
        known = self.find_model(self.model_aliases.get(row["model"], row["model"]))
        layers, hidden = number(row, "layers"), number(row, "hidden")
        if known is not None and hidden in (None, known.hidden):
            return with_layers(known, int(layers)) if layers and int(layers) != known.layers else known
        if layers is None or hidden is None:
            raise UnreadableRow(
                f"model {row['model']!r} is not in the catalog and the row states no layers and hidden size: "
                "give them, or name a catalog model."
            )
        return arch_from_columns(row)

    def _accelerator(self, text: str) -> tuple[Accelerator, float, float]:
        name, _, variant = text.partition("(")
        found = self.find_accelerator(name.strip())
        if found is None:
            raise UnreadableRow(f"gpu {text!r} is not in the catalog.")
        memory = re.search(r"(\d+)\s*GB", variant)
        watts = re.search(r"(\d+)\s*W\b", variant)
        limit = float(watts[1]) if watts else (found.tdp_w or 0.0) * (POWER_LIMITED if "limited" in variant else 1.0)
        reference = self.profiles.reference_watts_per_tflop
        share = power_share(found.generation, limit, sixteen_bit_peak(found), reference)
        return found, float(memory[1]) * MARKETING_GB_TO_BYTES if memory else found.memory_bytes, share

    def _framework(self, row: Row, assumed: list[str]) -> FrameworkProfile:
        text = row.get("framework", "")
        for pattern, key in self.framework_patterns:
            if re.search(pattern, text):
                return self.profiles.frameworks[key]
        assume(assumed, "framework profile", self.fallback_framework)
        return self.profiles.frameworks[self.fallback_framework]

    def _document_tokens(self, row: Row, method: str) -> float:
        if method == "pretrain" or any(re.search(pattern, prose_of(row)) for pattern in self.long_documents):
            return PACKED_LONG_DOCUMENTS
        return self.profiles.finetune_document_tokens
