"""Certificates: good and bad ones, the same for every engine."""

from __future__ import annotations

import pytest
from certificates import Authority, Pair
from raw_server import Serve, answer_of
from site_of_pages import Engine

from silkline.errors import TlsError
from silkline.request import Request

OK = answer_of(200, {}, b"trusted")


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="session")
def bad(authority: Authority, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Pair]:
    stranger = Authority(tmp_path_factory.mktemp("stranger"), "A stranger")
    return {
        "expired": authority.issue("localhost", days=-1),
        "wrong host": authority.issue("example.com", "*.localhost"),
        "unknown authority": stranger.issue("localhost"),
    }


async def test_a_certificate_of_a_trusted_authority_is_accepted(
    serve: Serve, engine: Engine, authority: Authority
) -> None:
    server = await serve({"/": OK}, tls=authority.issue("localhost", "127.0.0.1").server_context())
    fetcher = engine(ca_file=str(authority.ca_file))
    for host in ("localhost", "127.0.0.1"):
        response = await fetcher.fetch(Request(f"https://{host}:{server.port}/"))
        assert response.body == b"trusted"
    with pytest.raises(TlsError):
        await engine().fetch(Request(f"https://localhost:{server.port}/"))


@pytest.mark.parametrize("fault", ["expired", "wrong host", "unknown authority"])
async def test_a_certificate_with_a_fault_is_a_tls_error_unless_none_is_checked(
    serve: Serve, engine: Engine, authority: Authority, bad: dict[str, Pair], fault: str
) -> None:
    server = await serve({"/": OK}, tls=bad[fault].server_context())
    url = f"https://localhost:{server.port}/"
    with pytest.raises(TlsError) as caught:
        await engine(ca_file=str(authority.ca_file)).fetch(Request(url))
    assert "\n" not in str(caught.value)
    assert caught.value.__cause__ is not None
    assert server.heads == []
    assert (await engine(verify=False).fetch(Request(url))).body == b"trusted"
