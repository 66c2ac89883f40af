"""Which release of a serving engine a question is about: as it states, or the newest that profiles know."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from planner.engine.advice import Advice
from planner.engine.engine_versions import is_version, release_key, version_key
from planner.engine.errors import FieldError, InvalidQuestion
from planner.engine.sentences import Code, say
from planner.engine.serving_calibration import ServingProfiles
from planner.engine.workload import InferenceQuestion

LISTED: Final = 6
"""Versions that an error names at most: the newest."""


def known_versions(question: InferenceQuestion, profiles: ServingProfiles) -> Sequence[str]:
    """Versions of the question's engine that its constants tell apart, the oldest first."""
    return profiles.versions.get(profiles.calibrated_as.get(question.engine, question.engine), ())


def check_version(question: InferenceQuestion, profiles: ServingProfiles) -> None:
    """Raise ``InvalidQuestion`` for what is no version of the engine, or is older than any that is known."""
    version, known = question.engine_version, known_versions(question, profiles)
    numbers, message = release_key(version), ""
    if version and not is_version(version):
        message = say("Not a version.")
    elif known and numbers and numbers < version_key(known[0]):
        message = say("Older than any known version of {engine}.", engine=Code(question.engine))
    if message:
        raise InvalidQuestion(
            [
                FieldError(
                    field="engine_version",
                    value=version,
                    message=message,
                    allowed=_allowed(known),
                    code="unknown_version",
                )
            ]
        )


def _allowed(known: Sequence[str]) -> str:
    if not known:
        return say("a version such as 0.20.1, nightly or a commit, or empty")
    listed = ", ".join(reversed(known[-LISTED:]))
    return say("from {oldest} on, such as {listed}; nightly or a commit; or empty", oldest=known[0], listed=listed)


def release_assumption(question: InferenceQuestion, profiles: ServingProfiles) -> Iterator[str]:
    """The release that an answer's speed is of."""
    known = known_versions(question, profiles)
    if question.engine_version:
        yield say(
            "Speed as of {engine}, version {version}.", engine=Code(question.engine), version=question.engine_version
        )
    elif known:
        yield say(
            "Speed as of {engine}, version {version}, the newest one known.",
            engine=Code(question.engine),
            version=known[-1],
        )


def release_warnings(question: InferenceQuestion, profiles: ServingProfiles) -> Iterator[Advice]:
    """That a version is newer than any that was measured."""
    version, known = question.engine_version, known_versions(question, profiles)
    if known and release_key(version) > version_key(known[-1]):
        said = say(
            "{engine} {version} is newer than any version known ({newest}): it is planned as that one.",
            engine=Code(question.engine),
            version=version,
            newest=known[-1],
        )
        yield Advice(field="engine_version", suggestion=said, value=known[-1], is_warning=True)
