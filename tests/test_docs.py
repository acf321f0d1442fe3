"""The documents say what the program does: their snippets run, and their tables are complete."""

from __future__ import annotations

import csv
import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from silkline import Crawler
from silkline.config import Settings
from silkline.demo import serve_in_thread
from silkline.resolve import BARE_NAMES, FIELDS, convert, option_of
from tests.documents import ROOT, snippet, text_of
from tests.site import Site, linked_site

README = "README.md"


def silkline(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "silkline", *arguments], cwd=cwd, capture_output=True, text=True, timeout=60
    )


def test_the_commands_without_code_run_as_written(tmp_path: Path) -> None:
    commands = [shlex.split(line) for line in snippet(README, "shop").splitlines()]
    assert [command[:2] for command in commands] == [["silkline", "crawl"]] * 2
    with serve_in_thread() as shop:
        task = json.dumps({"url": f"{shop}/?page=2"})
        (tmp_path / "urls.txt").write_text(f"# the shop\n{shop}/\n\n{task}\n")
        for command in commands:
            words = [word.replace("https://shop.example", shop) for word in command[1:]]
            done = silkline(*words, "--allow-private", cwd=tmp_path)
            assert done.returncode == 0, done.stderr
    with (tmp_path / "items.csv").open() as file:
        items = list(csv.DictReader(file))
    assert items
    assert set(items[0]) == {"url", "name", "price", "link"}
    assert all(item["name"] and item["price"] and item["link"].startswith("http") for item in items)
    assert len((tmp_path / "out.jsonl").read_text().splitlines()) == 2


QUOTES = {
    "/": '<div class="quote"><span class="text">To be</span><span><small class="author">A</small>'
    '<a href="/a/A">(about)</a></span></div><ul><li class="next"><a href="/page/2/">Next</a></li></ul>',
    "/page/2/": '<div class="quote"><span class="text">Or not</span><span><small class="author">A</small>'
    '<a href="/a/A">(about)</a></span></div>',
    "/a/A": "<h3>A. Author</h3>",
}
QUOTES_FOUND = [
    {"text": "To be", "author": "A"},
    {"text": "Or not", "author": "A"},
    {"name": "A. Author"},
]


@pytest.mark.parametrize("way", ["python", "silkline run"])
def test_the_python_example_runs_as_written(tmp_path: Path, way: str) -> None:
    with Site(dict(QUOTES)) as site:
        code = snippet(README, "quotes").replace("https://quotes.example", site.url)
        (tmp_path / "quotes.py").write_text(code)
        if way == "python":
            command = [sys.executable, "quotes.py"]
        else:
            command = [sys.executable, "-m", "silkline", "run", "quotes.py", f"{site.url}/"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
    found = [json.loads(line) for line in (tmp_path / "quotes.jsonl").read_text().splitlines()]
    assert sorted(map(str, found)) == sorted(map(str, QUOTES_FOUND))


def test_the_example_file_is_the_readme_example() -> None:
    def code(text: str) -> list[str]:
        body = text[text.index("from dataclasses") :]
        return [line.partition("  # ")[0].rstrip() for line in body.splitlines() if line.strip()]

    assert code((ROOT / "examples" / "quotes.py").read_text()) == [
        re.sub(r"\s+# dict.*", "", line) for line in code(snippet(README, "quotes"))
    ]


def test_the_testing_example_passes(tmp_path: Path) -> None:
    (tmp_path / "test_spider.py").write_text(snippet(README, "testing"))
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-o", "asyncio_mode=auto", "test_spider.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 passed" in done.stdout


def test_a_script_has_only_its_own_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "silkline.toml").write_text("max_depth = 1\n")
    monkeypatch.setenv("SILKLINE_MAX_PAGES", "1")
    monkeypatch.chdir(tmp_path)
    with Site(linked_site(13)) as site:
        crawler = Crawler("tree", quiet=True)
        crawler.handler(lambda page: page.follow("a"))
        assert crawler.run(f"{site.url}/").pages == 13


def test_links_beyond_the_depth_are_found_by_a_fresh_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with Site(linked_site(13)) as site:
        crawler = Crawler("tree", quiet=True)
        crawler.handler(lambda page: page.follow("a"))
        runs = [{"max_depth": 1}, {"max_depth": 2}, {"max_depth": 2, "fresh": True}]
        assert [crawler.run(f"{site.url}/", **settings).pages for settings in runs] == [4, 0, 13]


def test_items_without_an_output_are_kept_beside_the_job(tmp_path: Path) -> None:
    with Site({"/": "<title>Home</title>"}) as site:
        done = silkline("crawl", f"{site.url}/", "--job", "home", cwd=tmp_path)
    assert "Home" in done.stdout
    kept = (tmp_path / ".silkline" / "home.jsonl").read_text()
    assert json.loads(kept) == {"url": f"{site.url}/", "status": 200, "title": "Home"}


def test_every_command_in_the_readme_exists() -> None:
    commands = set(re.findall(r"^silkline ((?:dead )?[a-z]+)", text_of(README), re.M))
    assert {"crawl", "dead list", "dead stats", "dead resend", "dead drop"} <= commands
    for command in sorted(commands):
        done = silkline(*command.split(), "--help", cwd=ROOT)
        assert done.returncode == 0, f"silkline {command}: {done.stderr}"


def test_the_settings_table_is_complete_and_true() -> None:
    rows = re.findall(
        r"^\| `(\w+)` \| (\S*) ?\| (.*?) ?\| (\w*) ?\| .+ \|$", text_of("docs/settings.md"), re.M
    )
    assert [row[0] for row in rows] == list(FIELDS)
    defaults = Settings()
    for name, option, default, bare in rows:
        assert option in ("", f"`{option_of(name)}`"), name
        assert (bare == "bare") == (name in BARE_NAMES), name
        text = default.strip("`")
        value = getattr(defaults, name)
        assert (convert(name, text, "docs") if text else type(value)()) == value, name


def test_every_option_in_the_settings_table_exists() -> None:
    shown = silkline("crawl", "--help", cwd=ROOT).stdout
    options = re.findall(r"\| `(--[\w-]+)` \|", text_of("docs/settings.md"))
    assert len(options) > 15
    for option in options:
        assert re.search(rf"{option}\b", shown), option


@pytest.mark.parametrize(
    "document", sorted(ROOT.glob("*.md")) + sorted(ROOT.glob("docs/*.md")), ids=lambda p: p.name
)
def test_links_between_documents_lead_somewhere(document: Path) -> None:
    for target, place in re.findall(r"\]\((?!https?:)([^)#]*)#?([^)]*)\)", document.read_text()):
        path = document.parent / target if target else document
        assert path.exists(), target
        assert not place or place in anchors(path.read_text()), f"{target}#{place}"


def anchors(text: str) -> set[str]:
    """What headings are linked by, as GitHub makes it."""
    headings = re.findall(r"^#+ (.+)$", re.sub(r"^```.*?^```$", "", text, flags=re.S | re.M), re.M)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_every_page_of_the_documentation_is_in_the_index() -> None:
    index = text_of(README).partition("## Documentation")[2]
    for page in sorted((ROOT / "docs").glob("*.md")):
        assert f"[docs/{page.name}](docs/{page.name})" in index
