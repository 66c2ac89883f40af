"""Calls to addresses that users name: nothing inside the network is reached, whatever a name or an answer says."""

from __future__ import annotations

import datetime
import ipaddress
import re
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
from django.test import override_settings

from planner.services import outbound
from planner.services.outbound import Refused, checked_url, may_be_called, post

PUBLIC = "93.184.215.14"
INSIDE = (
    "127.0.0.1",
    "0.0.0.0",
    "10.1.2.3",
    "172.16.0.1",
    "192.168.1.1",
    "169.254.169.254",
    "100.64.0.1",
    "192.0.0.8",
    "198.18.0.1",
    "224.0.0.1",
    "240.0.0.1",
    "255.255.255.255",
    "::1",
    "::",
    "::127.0.0.1",
    "::ffff:127.0.0.1",
    "::ffff:169.254.169.254",
    "::ffff:10.0.0.1",
    "fe80::1",
    "fec0::1",
    "fc00::1",
    "fd12:3456::1",
    "ff02::1",
    "2002:7f00:1::",
    "2002:a9fe:a9fe::1",
    "64:ff9b::7f00:1",
    "64:ff9b::a00:1",
    "64:ff9b:1::1",
    "2001:0:7f00:1::1",
    "2001:db8::1",
)


@pytest.mark.parametrize("address", INSIDE)
def test_no_address_inside_may_be_called(address: str) -> None:
    assert not may_be_called(ipaddress.ip_address(address))
    host = f"[{address}]" if ":" in address else address
    with pytest.raises(Refused) as refused:
        checked_url(f"https://{host}/hook")
    assert refused.value.code == "address"


@pytest.mark.parametrize("address", ["127.0.0.1", "::ffff:127.0.0.1"])
def test_an_allowed_network_is_that_inside_ipv6_too(address: str) -> None:
    with override_settings(WEBHOOK_ALLOWED_NETWORKS=["127.0.0.0/8"]):
        assert may_be_called(ipaddress.ip_address(address))
    assert not may_be_called(ipaddress.ip_address(address))


@pytest.mark.parametrize("address", [PUBLIC, "2606:4700::1111", "::ffff:93.184.215.14", "64:ff9b::5db8:d70e"])
def test_public_addresses_may(address: str) -> None:
    assert may_be_called(ipaddress.ip_address(address))


@pytest.mark.parametrize(
    "url",
    [
        "",
        "erp.example.com/hook",
        "http://erp.example.com/",
        "ftp://erp.example.com/",
        "file:///etc/passwd",
        "https:///hook",
        "https://user@erp.example.com/",
        "https://user:secret@erp.example.com/",
        "https://erp.example.com/#fragment",
        "https://erp.example.com:22/",
        "https://erp.example.com:99999/",
        "https://erp.example.com/a b",
        "https://erp.example.com/\r\nX-Evil: 1",
        "https://bücher.example/",
        "https://[::1",
        "https://erp.example.com/" + "a" * 500,
    ],
)
def test_what_is_no_usable_address(url: str) -> None:
    with pytest.raises(Refused):
        checked_url(url)


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[list[str]]]:
    """What names resolve to, one answer a look-up, the last one again and again; looked up in nothing else."""
    known: dict[str, list[list[str]]] = {}

    def resolve(host: str, port: int, **_: Any) -> list[Any]:
        if host not in known:
            raise socket.gaierror(-2, "Name or service not known")
        found = known[host].pop(0) if len(known[host]) > 1 else known[host][0]
        families = [socket.AF_INET6 if ":" in each else socket.AF_INET for each in found]
        return [(family, socket.SOCK_STREAM, 6, "", (each, port)) for family, each in zip(families, found, strict=True)]

    monkeypatch.setattr("planner.services.outbound.socket.getaddrinfo", resolve)
    return known


@pytest.fixture
def connects(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Where sockets are told to connect; none ever does."""
    tried: list[Any] = []

    def connect(self: socket.socket, place: Any) -> None:
        tried.append(place)
        raise ConnectionRefusedError

    class Socket(socket.socket):
        pass

    Socket.connect = connect  # type: ignore[method-assign,assignment]
    monkeypatch.setattr("planner.services.outbound.socket.socket", Socket)
    return tried


@pytest.mark.parametrize("address", INSIDE)
def test_a_name_that_leads_inside_is_not_called(
    names: dict[str, list[list[str]]], connects: list[Any], address: str
) -> None:
    names["evil.example"] = [[address]]
    outcome = post("https://evil.example/", b"{}", {})
    assert (outcome.status, outcome.error) == (None, "address")
    assert address not in outcome.detail
    assert connects == []


def test_one_address_inside_among_public_ones_is_enough(names: dict[str, list[list[str]]], connects: list[Any]) -> None:
    names["mixed.example"] = [[PUBLIC, "10.0.0.5"]]
    assert post("https://mixed.example/", b"{}", {}).error == "address"
    assert connects == []


def test_a_name_is_looked_up_once_and_that_address_called(
    names: dict[str, list[list[str]]], connects: list[Any]
) -> None:
    """DNS rebinding: public when looked at, inside a moment later."""
    names["rebind.example"] = [[PUBLIC], ["127.0.0.1"]]
    assert post("https://rebind.example/", b"{}", {}).error == "connection"
    assert connects == [(PUBLIC, 443)]


@pytest.mark.parametrize("host", ["2130706433", "0x7f.1", "017700000001", "127.1", "localhost"])
def test_other_spellings_of_loopback_lead_nowhere(host: str) -> None:
    """Here the system's own resolver reads them."""
    assert post(f"https://{host}/", b"{}", {}).error in ("address", "name")


def test_an_unknown_name_is_told(names: dict[str, list[list[str]]]) -> None:
    assert post("https://nowhere.example/", b"{}", {}).error == "name"


@contextmanager
def answering(answer: bytes, *, context: ssl.SSLContext | None = None, drip: float = 0.0) -> Iterator[tuple[int, Any]]:
    """A server that answers each call with these bytes, all at once or one by one; yields its port and what it got."""
    got: list[bytes] = []
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                plain, _ = listener.accept()
            except OSError:
                return
            try:
                caller = context.wrap_socket(plain, server_side=True) if context else plain
                got.append(_request(caller))
                for at in range(0, len(answer), 1 if drip else len(answer)):
                    caller.sendall(answer[at : at + (1 if drip else len(answer))])
                    time.sleep(drip)
                caller.close()
            except OSError:
                plain.close()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield listener.getsockname()[1], got
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(5)


def _request(caller: socket.socket) -> bytes:
    """Head and body of one request."""
    data = b""
    while b"\r\n\r\n" not in data and (part := caller.recv(65536)):
        data += part
    head, _, body = data.partition(b"\r\n\r\n")
    length = re.search(rb"Content-Length: (\d+)", head)
    while length and len(body) < int(length[1]) and (part := caller.recv(65536)):
        body += part
    return head + b"\r\n\r\n" + body


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
