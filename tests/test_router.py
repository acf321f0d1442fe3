from __future__ import annotations

from typing import Any

import pytest

from silkline.errors import ConfigError, UnknownLabelError
from silkline.request import Request
from silkline.router import Router


def listing(page: Any) -> None: ...


def detail(page: Any) -> None: ...


@pytest.fixture
def router() -> Router:
    router = Router()
    router.add("default", listing)
    router.add("detail", detail)
    return router


def test_each_label_finds_its_handler(router: Router) -> None:
    assert router.handler("default") is listing
    assert router.handler("detail") is detail


def test_an_unknown_label_names_the_known_ones(router: Router) -> None:
    with pytest.raises(UnknownLabelError, match=r"'detial'.*default, detail"):
        router.handler("detial")


def test_requests_are_checked_before_they_are_added(router: Router) -> None:
    router.check([Request("https://a/"), Request("https://a/", label="detail")])
    with pytest.raises(UnknownLabelError, match="'nope'"):
        router.check([Request("https://a/"), Request("https://a/", label="nope")])


def test_a_label_has_one_handler(router: Router) -> None:
    with pytest.raises(ConfigError, match="'detail' has the handler detail already"):
        router.add("detail", listing)


def test_only_functions_are_handlers(router: Router) -> None:
    with pytest.raises(ConfigError, match="cannot be called"):
        router.add("x", "detail")  # type: ignore[arg-type]


def test_a_crawler_without_the_default_handler_says_so() -> None:
    router = Router()
    router.add("detail", detail)
    with pytest.raises(UnknownLabelError, match=r"no handler without a label; there are: detail"):
        router.check([Request("https://a/")])
