"""What happened to a simulated fleet, in words, as rows of a table and as a picture over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from frontend import numbers
from frontend.answers.shown import Chart
from frontend.answers.simulation_words import clock
from frontend.figures import run_events
from planner.engine.simulate.incidents import ALWAYS, OF_NODES, listed

MOST_ROWS = 200
"""Of the table, of what is no failure, notice, interruption or upgrade; of those as many as a page can hold."""
MOST_BREAKS = 1000
MOST_MARKED = 40
"""Losses that a chart of latencies marks: more can't be told apart."""
LOST = ("failed", "interrupted")
AT_ONE = ("kind", "at_s", "node")
"""What the incidents of one node's replicas have in common."""
INCIDENTS: dict[str, str | Promise] = {
    "scaled": gettext_lazy("Replicas wanted: %(n)s"),
    "failed": gettext_lazy("A node failed"),
    "noticed": gettext_lazy("Notice of a spot interruption"),
    "interrupted": gettext_lazy("Spot node taken away"),
    "repaired": gettext_lazy("Node repaired"),
    "ready": gettext_lazy("Replica ready"),
    "upgraded": gettext_lazy("Upgrade done"),
}
KINDS: dict[str, str | Promise] = {
    "failed": gettext_lazy("Node failed"),
    "noticed": gettext_lazy("Spot notice"),
    "interrupted": gettext_lazy("Spot taken"),
    "repaired": gettext_lazy("Repaired"),
    "upgraded": gettext_lazy("Upgraded"),
    "scaled": gettext_lazy("Scaled"),
    "ready": gettext_lazy("Ready"),
}
"""The rows of the picture of what happened."""


def listed_of(result: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """The incidents that a result lists; one stored by an older release lists the first."""
    incidents = result["incidents"]
    found: Sequence[Mapping[str, Any]] = incidents.get("listed", incidents.get("first", ()))
    return found


def incident_table(result: Mapping[str, Any]) -> tuple[tuple[tuple[str, str, str, str], ...], str]:
    """When, what, which replicas, requests lost: all that broke, of the rest as much as a table can hold.

    And how many of how many it shows; empty where it shows all.
    """
    found = _by_node(listed_of(result))
    shown = [found[place] for place in listed([each["kind"] for each in found], MOST_ROWS, MOST_BREAKS)]
    note = _shown(result, sum(len(each["hit"]) for each in shown), MOST_BREAKS)
    return tuple(_cells(each) for each in shown), note


def _by_node(found: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """What befell one node at one time as one, with all of its replicas (``hit``)."""
    joined: list[dict[str, Any]] = []
    for each in found:
        last = joined[-1] if joined else {}
        at = [each.get(name) for name in AT_ONE]
        if each["kind"] in OF_NODES and each.get("node") is not None and at == [last.get(name) for name in AT_ONE]:
            last["hit"].append(each["replica"])
            last["lost_requests"] += each["lost_requests"]
        else:
            joined.append({**each, "hit": [each["replica"]]})
    return joined


def events_chart(result: Mapping[str, Any], span: float) -> Chart:
    """What broke and when, what was scaled, what came up."""
    incidents, found = result["incidents"], listed_of(result)
    happened = [
        run_events.Event(
            at_s=each["at_s"],
            kind=str(KINDS.get(each["kind"], each["kind"])),
            words=_line(each),
            weight=each["lost_requests"],
        )
        for each in _by_node(found)
    ]
    kinds = [str(name) for name in KINDS.values() if any(event.kind == str(name) for event in happened)]
    broken = sum(incidents.get("counts", {}).get(kind, 0) for kind in LOST)
    title = (
        _("Nodes were lost %(n)s times, %(lost)s requests sent again")
        % {"n": numbers.fixed(broken), "lost": numbers.fixed(incidents.get("lost_requests"))}
        if broken
        else _("What happened to the fleet, and when")
    )
    figure = run_events.events(span, happened, kinds)
    return Chart(id="run-events", title=title, figure=figure, note=_shown(result, len(found)))


def marked_losses(result: Mapping[str, Any]) -> tuple[list[float], str]:
    """When nodes went, and what the lines that mark it mean; none where they are too many to be told apart."""
    times = sorted({each["at_s"] for each in listed_of(result) if each["kind"] in LOST})
    if not times:
        return [], ""
    if len(times) > MOST_MARKED:
        return [], _("Nodes were lost too often to mark each time here.")
    return times, _("Dotted: a node failed or was taken away.")


def _shown(result: Mapping[str, Any], shown: int, most_breaks: int | None = None) -> str:
    incidents = result["incidents"]
    counts = incidents.get("counts", {})
    total = incidents.get("total", sum(counts.values()))
    if shown >= total:
        return ""
    values = {"n": numbers.fixed(shown), "total": numbers.fixed(total)}
    breaks = sum(incidents.get("rows", counts).get(kind, 0) for kind in ALWAYS)
    there = sum(each["kind"] in ALWAYS for each in listed_of(result))
    if there < breaks or (most_breaks is not None and breaks > most_breaks):
        return _("%(n)s of %(total)s shown.") % values
    return _("%(n)s of %(total)s shown, all failures, notices, interruptions and upgrades among them.") % values


def _cells(incident: Mapping[str, Any]) -> tuple[str, str, str, str]:
    where = [str(incident["region"])] if incident.get("region") else []
    if incident["replica"] is not None or not where:
        where.append(_replicas(incident))
    return clock(incident["at_s"]), _what(incident), " · ".join(where), numbers.fixed(incident["lost_requests"])


def _replicas(incident: Mapping[str, Any]) -> str:
    """Numbers of its replicas; of many in a row the first and the last."""
    hit = [replica for replica in incident["hit"] if replica is not None]
    if len(hit) > 2 and hit == list(range(hit[0], hit[0] + len(hit))):
        return f"{numbers.fixed(hit[0])}–{numbers.fixed(hit[-1])}"
    return ", ".join(numbers.fixed(replica) for replica in hit) or numbers.NOTHING


def _what(incident: Mapping[str, Any]) -> str:
    return str(INCIDENTS.get(incident["kind"], incident["kind"])) % {"n": numbers.fixed(incident["replicas"])}


def _line(incident: Mapping[str, Any]) -> str:
    """One incident as a line."""
    parts = [clock(incident["at_s"]), _what(incident), str(incident.get("region") or "")]
    if incident["replica"] is not None:
        named = ngettext("replica %(n)s", "replicas %(n)s", len(incident["hit"]))
        parts.append(named % {"n": _replicas(incident)})
    if lost := incident["lost_requests"]:
        parts.append(ngettext("%(n)s request lost", "%(n)s requests lost", lost) % {"n": numbers.fixed(lost)})
    return " · ".join(part for part in parts if part)
