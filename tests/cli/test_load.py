from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from silkline.cli.load import crawler_from, crawler_named
from silkline.crawler import Crawler
from silkline.errors import ConfigError

SPIDER = """
from silkline import Crawler

crawler = Crawler("quotes")

@crawler.handler
def page(page):
    return None

if __name__ == "__main__":
    raise SystemExit("must not run")
"""


@pytest.fixture(autouse=True)
def clean_imports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        if not name.startswith("silkline"):
            del sys.modules[name]


def write(name: str, text: str) -> Path:
    path = Path(name)
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    return path


def mistake(path: Path, name: str | None = None) -> str:
    with pytest.raises(ConfigError) as caught:
        crawler_from(path, name)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_the_one_crawler_of_a_file_is_found_and_its_main_part_is_not_run() -> None:
    assert crawler_from(write("quotes_spider.py", SPIDER)).settings.job == "quotes"


def test_a_file_may_import_its_neighbours_and_be_imported_by_them() -> None:
    write("spiders/shop_parts.py", "import shop_spider\nLABEL = 'x'\n")
    spider = write(
        "spiders/shop_spider.py", "import shop_parts\nfrom silkline import Crawler\nc = Crawler()\n"
    )
    assert isinstance(crawler_from(spider), Crawler)
    assert sys.modules["shop_parts"].shop_spider is sys.modules["shop_spider"]


def test_a_file_named_like_a_module_in_use_does_not_replace_it() -> None:
    import json

    assert isinstance(crawler_from(write("json.py", SPIDER)), Crawler)
    assert sys.modules["json"] is json


def test_an_alias_is_not_a_second_crawler() -> None:
    assert isinstance(crawler_from(write("alias_spider.py", SPIDER + "\nother = crawler\n")), Crawler)


def test_several_crawlers_need_a_choice() -> None:
    spider = write("two_spider.py", SPIDER + "\nother = Crawler('other')\n")
    assert mistake(spider) == (
        "two_spider.py: holds 2 Crawlers; choose one: "
        "silkline run two_spider.py:crawler or two_spider.py:other"
    )
    with pytest.raises(ConfigError, match=r"choose one: silkline work two_spider\.py:crawler or"):
        crawler_named("two_spider.py", command="work")
    assert crawler_from(spider, "other").settings.job == "other"
    assert mistake(spider, "third") == "two_spider.py: 'third' is no Crawler; there are: crawler, other"


def test_a_file_without_a_crawler_is_refused() -> None:
    assert mistake(write("empty_spider.py", "x = 1\n")).startswith("empty_spider.py: holds no Crawler; write")
    assert "there is none" in mistake(Path("empty_spider.py"), "x")


def test_a_path_that_is_no_file_is_refused(tmp_path: Path) -> None:
    assert mistake(Path("nowhere.py")) == "nowhere.py: no such file"
    assert mistake(tmp_path) == f"{tmp_path} is a directory, not a Python file"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("x = 1\ny = z\n", "bad/spider_1.py:2: NameError: name 'z' is not defined"),
        (
            "import nowhere_at_all\n",
            "bad/spider_1.py:1: ModuleNotFoundError: No module named 'nowhere_at_all'",
        ),
        ("def f(:\n", "bad/spider_1.py:1: invalid syntax"),
        ("raise SystemExit\n", "bad/spider_1.py:1: SystemExit"),
        ("import json\njson.loads('{')\n", "bad/spider_1.py:2: JSONDecodeError: "),
        (
            "import silkline\nsilkline.Crawler(concurrency=0)\n",
            "bad/spider_1.py:2: Crawler(...): concurrency must be a whole number from 1 to 10000, not '0'",
        ),
        ("import spider_part\n", "bad/spider_part.py:3: KeyError: 'x'"),
        ("x = 'a\0b'\n", "bad/spider_1.py:"),
    ],
)
def test_a_mistake_in_the_file_is_one_line_with_its_place(text: str, line: str) -> None:
    write("bad/spider_part.py", "\n\n{}['x']\n")
    assert mistake(write("bad/spider_1.py", text)).startswith(line)
