"""The code blocks of the documents: `<!-- run: name -->` above a block names it for the test that runs it."""

from __future__ import annotations

import ast
import doctest
import re
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parent.parent

_BLOCK = re.compile(r"^(?:<!-- run: (\S+) -->\n)?```(\w*)\n(.*?)^```$", re.S | re.M)


class Block(NamedTuple):
    """name: None where nothing is said."""

    name: str | None
    language: str
    code: str


def text_of(document: str) -> str:
    return (ROOT / document).read_text()


def blocks(document: str) -> list[Block]:
    return [Block(*parts) for parts in _BLOCK.findall(text_of(document))]


def snippet(document: str, name: str) -> str:
    found = [block.code for block in blocks(document) if block.name == name]
    assert len(found) == 1, f"{document} has {len(found)} snippets named {name}"
    return found[0]


def section(document: str, heading: str) -> str:
    """What stands under a heading of the second level."""
    match = re.search(rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", text_of(document), re.S | re.M)
    assert match, f"{document} has no heading {heading}"
    return match[1]


def run(document: str, name: str, names: dict[str, Any], replace: dict[str, str] | None = None) -> Any:
    """Run a snippet with and in `names`, as a notebook does. Returns the coroutine of one that awaits."""
    code = snippet(document, name)
    for old, new in (replace or {}).items():
        assert old in code, f"{document}, {name}: nothing to replace {old!r} in"
        code = code.replace(old, new)
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    names.setdefault("__name__", name)
    return eval(compile(code, f"{document}:{name}", "exec", flags, dont_inherit=True), names)


def check_session(document: str, name: str) -> None:
    """Run a snippet of prompts and answers, and compare the answers."""
    session = doctest.DocTestParser().get_doctest(snippet(document, name), {}, name, document, 0)
    said: list[str] = []
    failed, tried = doctest.DocTestRunner(verbose=False).run(session, out=said.append)
    assert tried, f"{document}, {name}: nothing to run"
    assert not failed, "".join(said)
