"""A WSGI application that tells how long a request's body is, for tests of the web server."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any


def app(environ: dict[str, Any], start_response: Callable[[str, list[tuple[str, str]]], Any]) -> Iterable[bytes]:
    """The path, and the number of bytes of the body that could be read."""
    try:
        body = environ["wsgi.input"].read()
        said = f"{environ['PATH_INFO']} {len(body)}"
    except OSError as error:
        said = f"broken {error}"
    start_response("200 OK", [("Content-Length", str(len(said))), ("Content-Type", "text/plain")])
    return [said.encode()]
