"""Print the serving engines' constants by quarter, with what each was fitted on."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from catalog.engine_profiles import EngineProfile, engine_profiles


class Command(BaseCommand):
    help = "Print every serving engine's constants by quarter, with the measured cases they were fitted on."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--json", action="store_true", help="As JSON, with every constant.")

    def handle(self, *args: Any, **options: Any) -> None:
        profiles = engine_profiles()
        if options["json"]:
            self.stdout.write(json.dumps([asdict(profile) for profile in profiles], indent=1))
            return
        self.stdout.write(f"{'engine':14}{'from':8}{'cases':>6}{'sources':>8}  constants before chip, format and model")
        for profile in profiles:
            self.stdout.write(_line(profile))


def _line(profile: EngineProfile) -> str:
    c = profile.constants
    shares = f"weights {c['weight_bandwidth']:.0%} KV {c['kv_bandwidth']:.0%} GEMM {c['gemm_compute']:.0%}"
    times = f"layer {c['layer_s'] * 1e6:.0f} us, step {c['step_s'] * 1e3:.2f} ms, request {c['request_s'] * 1e3:.1f} ms"
    origin = "" if profile.taken_from == profile.engine else f" (of {profile.taken_from})"
    counts = f"{profile.cases:6d}{len(profile.sources):8d}"
    return f"{profile.engine:14}{profile.era or '-':8}{counts}  {shares}; {times}{origin}"
