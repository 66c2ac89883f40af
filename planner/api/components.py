"""OpenAPI components that no type of the engine describes: errors, job requests, presets."""

from __future__ import annotations

from typing import Any

from planner.engine.simulate.question import SimulationQuestion
from planner.engine.simulate.records import MAX_FALLBACKS
from planner.engine.simulate.traffic_question import TrafficQuestion
from planner.engine.workload import InferenceQuestion
from planner.services.capacity_question import CapacityQuestion
from planner.services.plan_sweep import HIGHEST_FACTOR, LOWEST_FACTOR, MOST_POINTS
from planner.services.simulation_job import LONGEST_NAME, MOST_REGIONS

Schema = dict[str, Any]

TRACE: Schema = {"type": "string", "pattern": "^[0-9a-f]{32}$", "description": "The id of an uploaded trace."}
MONEY: Schema = {"type": "string", "format": "decimal", "pattern": r"^-?\d+(\.\d+)?$"}


NULL: Schema = {"nullable": True, "enum": [None]}
"""Null beside a component: `nullable` next to a `$ref` would have no effect."""


def ref(component: str | type) -> Schema:
    name = component if isinstance(component, str) else component.__name__
    return {"$ref": f"#/components/schemas/{name}"}


ERROR_COMPONENTS: dict[str, Schema] = {
    "Error": {
        "type": "object",
        "required": ["code", "detail", "attr", "value", "allowed"],
        "properties": {
            "code": {"type": "string", "description": "What kind of fault, for programs.", "example": "out_of_range"},
            "detail": {"type": "string", "description": "What is wrong, for people.", "example": "Out of range."},
            "attr": {
                "type": "string",
                "nullable": True,
                "description": "The field at fault; null where it is the request as a whole.",
                "example": "headroom",
            },
            "value": {"nullable": True, "description": "The value given, shortened where long.", "example": 2},
            "allowed": {
                "type": "string",
                "nullable": True,
                "description": "What would do.",
                "example": "0 to 0.9 share",
            },
        },
    },
    "ErrorEnvelope": {
        "type": "object",
        "description": "Every answer from 400 on.",
        "required": ["type", "errors"],
        "properties": {
            "type": {"type": "string", "enum": ["validation_error", "client_error", "server_error"]},
            "errors": {"type": "array", "minItems": 1, "items": {"$ref": "#/components/schemas/Error"}},
        },
    },
}

REGIONS: Schema = {
    "type": "array",
    "minItems": 1,
    "maxItems": MOST_REGIONS,
    "items": ref("SimulatedRegion"),
    "description": "Gateways with replicas and traffic of their own; excludes `trace`.",
}
_FACTOR: Schema = {"type": "number", "minimum": LOWEST_FACTOR, "maximum": HIGHEST_FACTOR, "x-unit": "x asked load"}
RUN_REQUEST_COMPONENTS: dict[str, Schema] = {
    "RunRequest": {
        "oneOf": [ref("PlanSweepRequest"), ref("SimulationRunRequest"), ref("CapacityRunRequest")],
        "discriminator": {
            "propertyName": "kind",
            "mapping": {
                "capacity_search": ref("CapacityRunRequest")["$ref"],
                "plan_sweep": ref("PlanSweepRequest")["$ref"],
                "simulation": ref("SimulationRunRequest")["$ref"],
            },
        },
    },
    "SimulationRunRequest": {
        "type": "object",
        "description": "A plan's cluster serving traffic, request by request.",
        "required": ["kind", "params"],
        "additionalProperties": False,
        "properties": {"kind": {"type": "string", "enum": ["simulation"]}, "params": ref("SimulationRequest")},
    },
    "CapacityRunRequest": {
        "type": "object",
        "description": "The smallest fleet that holds the limits for a traffic.",
        "required": ["kind", "params"],
        "additionalProperties": False,
        "properties": {"kind": {"type": "string", "enum": ["capacity_search"]}, "params": ref("CapacityRequest")},
    },
    "CapacityRequest": {
        "type": "object",
        "description": "Which cluster is to hold the question's `ttft_ms`, `tpot_ms` or both, at its `slo_percentile`, "
        "for which traffic; `traffic` and `trace` exclude each other. With `regions` each is to hold them for its own "
        "requests, wherever they are served.",
        "required": ["question"],
        "additionalProperties": False,
        "properties": {
            "question": ref(InferenceQuestion),
            "scenario": ref(SimulationQuestion),
            "traffic": ref(TrafficQuestion),
            "trace": TRACE,
            "regions": REGIONS,
            "search": ref(CapacityQuestion),
        },
    },
    "SimulationRequest": {
        "type": "object",
        "description": "Which cluster serves which traffic; `traffic` and `trace` exclude each other. Mean load and "
        "lengths that `traffic` leaves out are the question's.",
        "required": ["question"],
        "additionalProperties": False,
        "properties": {
            "question": ref(InferenceQuestion),
            "scenario": ref(SimulationQuestion),
            "traffic": ref(TrafficQuestion),
            "trace": TRACE,
            "regions": REGIONS,
        },
    },
    "SimulatedRegion": {
        "type": "object",
        "description": "Its `scenario` and `traffic` add to the common ones; a `trace` of its own takes their place. "
        "Without a seed of its own it has the common one plus its place.",
        "required": ["name"],
        "additionalProperties": False,
        "properties": {
            "name": {"type": "string", "minLength": 1, "maxLength": LONGEST_NAME},
            "scenario": ref(SimulationQuestion),
            "traffic": ref(TrafficQuestion),
            "trace": TRACE,
            "fallback": {
                "type": "array",
                "maxItems": MAX_FALLBACKS,
                "items": {"type": "string", "maxLength": LONGEST_NAME},
                "description": "Other regions, in order, that take a request this one can't.",
            },
            "round_trip_ms": {
                "type": "number",
                "minimum": 0,
                "maximum": 60_000,
                "description": "Added to a request that another region serves.",
            },
            "spill_outstanding": {
                "type": "integer",
                "nullable": True,
                "minimum": 1,
                "maximum": 1_000_000,
                "description": "Once every replica has so many requests out, they go to a fallback too.",
            },
        },
    },
    "StoredTrace": {
        "type": "object",
        "required": ["id"],
        "properties": {"id": {"type": "string", "pattern": "^[0-9a-f]{32}$"}},
    },
    "PlanSweepRequest": {
        "type": "object",
        "description": "One inference question planned again and again under more and more load.",
        "required": ["kind", "params"],
        "additionalProperties": False,
        "properties": {
            "kind": {"type": "string", "enum": ["plan_sweep"]},
            "params": {
                "type": "object",
                "required": ["question"],
                "additionalProperties": False,
                "properties": {
                    "question": ref(InferenceQuestion),
                    "lowest": _FACTOR | {"default": 0.25, "description": "Least load, as a multiple of the asked one."},
                    "highest": _FACTOR | {"default": 8, "description": "Most load; above `lowest`."},
                    "points": {
                        "type": "integer",
                        "minimum": 2,
                        "maximum": MOST_POINTS,
                        "default": 12,
                        "description": "Loads planned, evenly spaced in ratio.",
                    },
                },
            },
        },
    },
}

PRESET_COMPONENTS: dict[str, Schema] = {
    "Presets": {
        "type": "object",
        "description": "Use cases with typical lengths and latency limits.",
        "required": ["as_of", "note", "presets"],
        "properties": {
            "as_of": {"type": "string", "format": "date"},
            "note": {"type": "string", "description": "How far to trust them."},
            "presets": {"type": "array", "items": ref("Preset")},
        },
    },
    "Preset": {
        "type": "object",
        "required": ["key", "label", "fields", "lengths_source", "limits_source"],
        "properties": {
            "key": {"type": "string"},
            "label": {"type": "string"},
            "fields": {
                "type": "object",
                "description": "Members of an inference question; model and traffic are still to be added.",
                "additionalProperties": {"type": "number"},
            },
            "lengths_source": {"type": "string", "description": "Where the lengths are from."},
            "limits_source": {"type": "string", "description": "Where the latency limits are from."},
        },
    },
}
