"""`silkline fetch`: what happened to one page, for people and for programs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from aiohttp import web

from tests.cli.conftest import Call, Run
from tests.site import Site

SECRET = "s3cret"


async def moved(request: web.Request) -> web.StreamResponse:
    return web.Response(status=301, headers={"Location": "/page", "Set-Cookie": f"sid={SECRET}"})


async def asked(request: web.Request) -> web.StreamResponse:
    body = (await request.read()).decode()
    return web.json_response({"method": request.method, "body": body, "x": request.headers.get("X-Mine")})


async def binary(request: web.Request) -> web.StreamResponse:
    return web.Response(body=b"\x00\xff" * 1_000, content_type="application/octet-stream")


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    robots = "User-agent: *\nDisallow: /page\nCrawl-delay: 3\n"
    page = "<meta charset=utf-8><title>A \x1b[2J page</title><p>" + "<p>line\n" * 50
    with Site({"/": moved, "/page": page, "/robots.txt": robots, "/asked": asked, "/bin": binary}) as site:
        yield site


def test_everything_about_a_page_is_shown_without_credentials(silkline: Run, site: Site) -> None:
    done = silkline("fetch", site.url.replace("://", f"://ann:{SECRET}@") + "/", "--header", "X-Mine: yes")
    assert done.returncode == 0, done.stderr
    text = done.stdout
    assert SECRET not in text
    assert "\x1b" not in text
    for line in ("> X-Mine: yes", "> Authorization: Basic ***", "< HTTP/1.1 301 Moved Permanently"):
        assert f"{line}\n" in text
    rows = dict(line.split(maxsplit=1) for line in text.splitlines() if line[:1].isalpha() and " " in line)
    assert rows["answer"].startswith("200 OK from http://127.0.0.1:")
    assert rows["redirected"].endswith("/")
    assert rows["charset"] == "UTF-8, by the Content-Type header"
    assert rows["title"] == "A \u00b7[2J page"
    assert rows["robots.txt"].startswith("allowed")
    assert "wait" in rows["time"]
    assert text.rstrip().endswith("…")


@pytest.mark.parametrize("fetcher", ["http", "curl"])
def test_programs_get_one_json_object(inside: Call, site: Site, fetcher: str) -> None:
    done = inside("fetch", f"{site.url}/page", "--json", "--fetcher", fetcher)
    said = json.loads(done.stdout)
    assert (said["url"], said["status"], said["error"]) == (f"{site.url}/page", 200, None)
    assert (said["charset"], said["charset_source"], said["kind"]) == ("UTF-8", "http", "html")
    assert (said["robots"]["allowed"], said["robots"]["rule"]) == (False, "Disallow: /page")
    assert said["robots"]["crawl_delay"] == 3
    assert said["timings"]["total"] >= said["timings"]["first_byte"] > 0
    assert [entry["response"]["status"] for entry in said["exchanges"]] == [200]


def test_a_body_is_sent_and_a_body_is_kept(inside: Call, site: Site, tmp_path: Path) -> None:
    done = inside("fetch", f"{site.url}/asked", "--data", "a=1", "--header", "X-Mine: yes", "-o", "out.json")
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "out.json").read_text()) == {"method": "POST", "body": "a=1", "x": "yes"}
    assert f"saved to {tmp_path / 'out.json'}" in done.stdout
    assert "00 ff 00 ff" in inside("fetch", f"{site.url}/bin").stdout


@pytest.mark.parametrize("fetcher", ["http", "curl"])
def test_data_is_a_form_unless_a_header_says_else(inside: Call, site: Site, fetcher: str) -> None:
    words = ("fetch", f"{site.url}/asked", "--data", "a=1", "--fetcher", fetcher)
    assert "> Content-Type: application/x-www-form-urlencoded" in inside(*words).stdout
    shown = inside(*words, "--header", "content-type: text/plain").stdout.lower()
    assert "> content-type: text/plain" in shown
    assert "urlencoded" not in shown


def test_settings_of_a_job_do_not_touch_a_single_page(inside: Call, site: Site, tmp_path: Path) -> None:
    (tmp_path / "silkline.toml").write_text(
        "job = 'shop'\noutputs = ['a.csv']\nfiles_dir = '/nowhere'\ncache = 'offline'\nmax_body = 10\n"
    )
    done = inside("fetch", f"{site.url}/asked", "-o", "out")
    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "silkline.toml"]
    assert "failed      too_large: " in inside("fetch", f"{site.url}/page").stdout


def test_without_an_answer_the_reason_is_shown_and_the_code_is_1(inside: Call) -> None:
    for url, reason in (
        ("http://127.0.0.1:6379/", "blocked: "),
        (f"http://ann:{SECRET}@nowhere.invalid/", "dns: "),
    ):
        done = inside("fetch", url, "--robots", "off")
        assert done.returncode == 1
        assert f"failed      {reason}" in done.stdout
        assert SECRET not in done.stdout
        assert json.loads(inside("fetch", url, "--json").stdout)["error"]["cause"] == reason[:-2]


def test_what_cannot_be_fetched_is_a_usage_error(inside: Call, tmp_path: Path) -> None:
    for words, reason in (
        (["shop.example"], "has no scheme; write https://shop.example"),
        (["http://h.test/", "--method", "GET /"], "is not an HTTP method"),
        (["http://h.test/", "--data", "@missing"], "--data @missing: cannot be read: No such file"),
    ):
        done = inside("fetch", *words)
        assert done.returncode == 2
        assert reason in done.stderr


def test_a_crawl_prints_and_records_its_exchanges(silkline: Run, site: Site, tmp_path: Path) -> None:
    words = ["crawl", f"{site.url}/asked", "--debug-http", "--har", "out.har", "--auth"]
    done = silkline(*words, f"{site.url} bearer {SECRET}", "-o", "a.jsonl")
    assert done.returncode == 0, done.stderr
    assert "--- exchange 1\n" in done.stderr
    assert "> Authorization: Bearer ***\n" in done.stderr
    har = (tmp_path / "out.har").read_text()
    assert SECRET not in done.stderr + done.stdout + har
    urls = [entry["request"]["url"] for entry in json.loads(har)["log"]["entries"]]
    assert sorted(urls) == [f"{site.url}/asked", f"{site.url}/robots.txt"]
    again = silkline(*words, f"{site.url} bearer {SECRET}", "-o", "b.jsonl", "--wire-secrets")
    assert f"> Authorization: Bearer {SECRET}\n" in again.stderr
    assert len(json.loads((tmp_path / "out.har").read_text())["log"]["entries"]) == 4
