"""How the settings of identity become headers, and what is refused before anything starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from silkline import Crawler
from silkline.errors import ConfigError
from silkline.resolve import settings_from, shown


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"headers": ["Authorization: Basic abc"]}, "headers: Authorization cannot be sent .* use auth"),
        ({"headers": {"Cookie": "a=1"}}, "headers: Cookie cannot be sent"),
        ({"auth": ["https://h.example token sesame"]}, "auth, entry 1: is not in its form"),
        ({"identity": "browser", "contact": "me@h.example"}, "leave out user_agent and contact"),
    ],
)
def test_an_identity_that_cannot_be_is_refused_before_anything_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: dict[str, object], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".silkline").mkdir()
    kept = tmp_path / ".silkline" / "spider.db"
    kept.write_text("not ours")
    crawler = Crawler(quiet=True, fresh=True, **settings)
    crawler.handler(lambda page: None)
    with pytest.raises(ConfigError, match=message):
        crawler.run("http://127.0.0.1:9/")
    assert kept.read_text() == "not ours"


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("headers", "A: 1, 2\n B: 3", ("A: 1, 2", "B: 3")),
        ("headers", {"A": "1"}, ("A: 1",)),
        ("auth", {"https://h.example": "bearer x"}, ("https://h.example bearer x",)),
        ("contact", "me@h.example", "me@h.example"),
        ("referer", "Origin", "origin"),
        ("cookies", "off", "off"),
    ],
)
def test_the_forms_of_identity_settings(name: str, value: object, expected: object) -> None:
    assert getattr(settings_from({name: value}, "here"), name) == expected


@pytest.mark.parametrize(
    ("name", "value"),
    [("headers", "no colon"), ("headers", ["A\r\nB: 1"]), ("contact", "me"), ("contact", "x\ny@z")],
)
def test_identity_settings_that_are_none_are_refused(name: str, value: object) -> None:
    with pytest.raises(ConfigError, match=f"here: {name} must be "):
        settings_from({name: value}, "here")


def test_no_secret_is_quoted_or_shown() -> None:
    with pytest.raises(ConfigError) as error:
        settings_from({"auth": ["https://h.example bearer sesame\nx"]}, "here")
    assert "sesame" not in str(error.value)
    settings = settings_from({"auth": ["https://h.example bearer sesame", "h.example basic a:sesame b"]}, "")
    assert shown("auth", settings) == "https://h.example bearer ***, h.example basic ***"
