"""Calls to addresses that users name: nothing inside the network is reached, whatever a name or an answer says."""

from __future__ import annotations

import ipaddress
import socket
from typing import Any

import pytest
from django.test import override_settings

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
