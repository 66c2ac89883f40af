"""Calls out: what answers come to, how long they may take, and whom TLS trusts."""

from __future__ import annotations

import datetime
import ipaddress
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from planner.services import outbound
from planner.services.outbound import may_be_called, post
from tests.planner.answering import answering

PUBLIC = "93.184.215.14"


@pytest.fixture
def own_network(settings: Any) -> None:
    settings.WEBHOOK_ALLOWED_NETWORKS = ["127.0.0.0/8"]


@pytest.mark.usefixtures("own_network")
def test_an_operators_own_network_is_called_over_http_too() -> None:
    with answering(b"HTTP/1.1 204 No Content\r\n\r\n") as (port, got):
        outcome = post(f"http://127.0.0.1:{port}/hook?x=1", b'{"a":1}', {"Webhook-Id": "1"})
    assert (outcome.status, outcome.error) == (204, "")
    head, _, body = got[0].partition(b"\r\n\r\n")
    assert head.startswith(b"POST /hook?x=1 HTTP/1.1\r\n")
    assert f"Host: 127.0.0.1:{port}".encode() in head
    assert b"Webhook-Id: 1" in head
    assert body == b'{"a":1}'


@pytest.mark.usefixtures("own_network")
def test_other_networks_stay_closed_beside_ones_own() -> None:
    assert not may_be_called(ipaddress.ip_address("10.0.0.1"))
    assert post("http://10.0.0.1/", b"", {}).error == "address"


@pytest.mark.usefixtures("own_network")
@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
def test_redirects_are_not_followed(code: int) -> None:
    with answering(b"HTTP/1.1 200 OK\r\n\r\n") as (inner, reached):
        answer = f"HTTP/1.1 {code} Moved\r\nLocation: http://127.0.0.1:{inner}/\r\n\r\n".encode()
        with answering(answer) as (port, _):
            outcome = post(f"http://127.0.0.1:{port}/", b"{}", {})
    assert (outcome.status, outcome.error) == (code, "redirect")
    assert reached == []


@pytest.mark.usefixtures("own_network")
@pytest.mark.parametrize(
    ("answer", "status", "error", "retry_after"),
    [
        (b"HTTP/1.1 500 Oh\r\n\r\n", 500, "status", None),
        (b"HTTP/1.1 429 Slow\r\nRetry-After: 120\r\n\r\n", 429, "status", 120),
        (b"HTTP/1.1 503 Later\r\nRetry-After: Fri, 31 Dec 1999 23:59:59 GMT\r\n\r\n", 503, "status", None),
        (b"HTTP/1.1 410 Gone\r\n\r\n", 410, "status", None),
        (b"nonsense\r\n\r\n", None, "connection", None),
        (b"", None, "connection", None),
        (b"HTTP/1.1 200 OK\r\nX: " + b"a" * 70_000, None, "connection", None),
    ],
)
def test_what_other_answers_come_to(answer: bytes, status: int | None, error: str, retry_after: int | None) -> None:
    with answering(answer) if answer else _closing() as (port, _):
        outcome = post(f"http://127.0.0.1:{port}/", b"{}", {})
    assert (outcome.status, outcome.error, outcome.retry_after_s) == (status, error, retry_after)


@contextmanager
def _closing() -> Iterator[tuple[int, Any]]:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def hang_up() -> None:
            caller, _ = listener.accept()
            caller.close()

        thread = threading.Thread(target=hang_up, daemon=True)
        thread.start()
        yield listener.getsockname()[1], None
        thread.join(5)


@pytest.mark.usefixtures("own_network")
def test_an_answer_in_drops_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each drop comes before the socket's own limit: only the deadline of the whole ends it."""
    monkeypatch.setattr(outbound, "DEADLINE_S", 0.4)
    with answering(b"HTTP/1.1 200 OK\r\nX: " + b"a" * 400, drip=0.05) as (port, _):
        start = time.monotonic()
        outcome = post(f"http://127.0.0.1:{port}/", b"{}", {})
        taken = time.monotonic() - start
    assert outcome.error == "timeout"
    # In drops the answer alone would take 20 s; the machine may be busy with other tests.
    assert taken < 10


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """A certificate of erp.example, signed by itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "erp.example")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("erp.example")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    path = tmp_path / "certificate.pem"
    path.write_bytes(
        made.public_bytes(serialization.Encoding.PEM)
        + key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return path


@pytest.mark.usefixtures("own_network")
def test_tls_is_checked_for_the_name_and_not_the_address(
    certificate: Path, names: dict[str, list[list[str]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    names["erp.example"] = names["other.example"] = [["127.0.0.1"]]
    server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    server.load_cert_chain(certificate)
    with answering(b"HTTP/1.1 200 OK\r\n\r\n", context=server) as (port, got):
        assert post(f"https://erp.example:{port}/", b"{}", {}).error == "tls"
        trusting = ssl.create_default_context(cafile=certificate)
        monkeypatch.setattr(outbound, "_tls", lambda: trusting)
        assert post(f"https://other.example:{port}/", b"{}", {}).error == "tls"
        assert got == []
        assert post(f"https://erp.example:{port}/", b"{}", {}).status == 200
    assert f"Host: erp.example:{port}".encode() in got[0]
