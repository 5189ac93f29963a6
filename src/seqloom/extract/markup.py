"""Markdown and HTML read as plain text, with the way back to the original's offsets."""

from __future__ import annotations

import html
import re
import string
from bisect import bisect_right
from dataclasses import dataclass
from typing import Literal, get_args

from seqloom.errors import ConfigError, one_of

Markup = Literal["text", "markdown", "html"]


@dataclass(frozen=True)
class PlainText:
    """Text without its markup.

    Args:
        text: The text.
        pieces: Runs of it as (start in the text, start in the original, end in the original), in
            order. A run as long as in the original is the same there; another (`&amp;`) as a whole.
    """

    text: str
    pieces: tuple[tuple[int, int, int], ...]

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Where text[start:end] lies in the original."""
        return self._place(start, first=True), self._place(end - 1, first=False)

    def _place(self, index: int, *, first: bool) -> int:
        at = bisect_right(self.pieces, (index, float("inf"), 0)) - 1
        begin, start, end = self.pieces[at]
        following = self.pieces[at + 1][0] if at + 1 < len(self.pieces) else len(self.text)
        if following - begin == end - start:
            return start + (index - begin) + (0 if first else 1)
        return start if first else end


class _Builder:
    def __init__(self, source: str) -> None:
        self.source = source
        self.parts: list[str] = []
        self.pieces: list[tuple[int, int, int]] = []
        self.length = 0

    def keep(self, start: int, end: int) -> None:
        self.put(self.source[start:end], start, end)

    def put(self, text: str, start: int, end: int) -> None:
        if text:
            self.pieces.append((self.length, start, end))
            self.parts.append(text)
            self.length += len(text)

    def done(self) -> PlainText:
        return PlainText("".join(self.parts), tuple(self.pieces))


def read_markup(source: str, markup: Markup) -> PlainText:
    """Return what a reader of the page would read, with the way back.

    Args:
        source: The page.
        markup: "text" (nothing is changed), "markdown" or "html".

    Examples:
        >>> page = "<p>Cats &amp; dogs.</p>"
        >>> plain = read_markup(page, "html")
        >>> plain.text.strip()
        'Cats & dogs.'
        >>> start, end = plain.span(*(plain.text.index(w) for w in ("Cats", ".")))
        >>> page[start:end]
        'Cats &amp; dogs'
    """
    if markup not in get_args(Markup):
        raise ConfigError(one_of("markup", markup, get_args(Markup)))
    if markup == "html":
        return _read_html(source)
    if markup == "markdown":
        return _read_markdown(source)
    return PlainText(source, ((0, 0, len(source)),))


def guess_markup(name: str, source: str) -> Markup:
    """Tell the markup by the file's name, or by how the page begins."""
    suffix = name.lower().rpartition(".")[2] if "." in name else ""
    if suffix in ("html", "htm", "xhtml"):
        return "html"
    if suffix in ("md", "markdown"):
        return "markdown"
    start = source[:200].lstrip().lower()
    if start.startswith(("<!doctype html", "<html", "<head", "<body")):
        return "html"
    return "text"


_BLOCKS = frozenset(
    "address article aside blockquote body br dd div dl dt fieldset figcaption figure footer form "
    "h1 h2 h3 h4 h5 h6 header hr html li main nav ol p pre section table td th title tr ul".split()
)
_UNREAD = ("script", "style", "noscript", "template", "svg", "head", "nav", "footer", "form")
_TOKEN = re.compile(
    r"<!--.*?(?:-->|\Z)|<!\[CDATA\[|\]\]>|<[!?][^<>]*>|<(/?)([a-zA-Z][a-zA-Z0-9]*+)"
    r"(?>(?:[^<>\"']|\"[^\"<]*\"|'[^'<]*')*)>|&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z]\w{1,31});",
    re.DOTALL,
)
_LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)  # keeps the length
_SPACES = re.compile(r"\s+")


def _read_html(source: str) -> PlainText:
    out, at = _Builder(source), 0
    lower = source.translate(_LOWER)
    unclosed: set[str] = set()  # each is looked for once, so that no page takes quadratic time
    while match := _TOKEN.search(source, at):
        _keep_words(out, source, at, match.start())
        at = match.end()
        name = (match[2] or "").lower()
        if match.group()[0] == "&":
            out.put(html.unescape(match.group()), match.start(), at)
        elif name in _UNREAD and name not in unclosed and not match[1]:
            close = -1 if match.group().endswith("/>") else lower.find(f"</{name}", at)
            if close < 0 and not match.group().endswith("/>"):
                unclosed.add(name)
                at = len(source) if name in ("script", "style") else at
            at = max(close, at)
        elif name == "li" and not match[1]:
            out.put("\n\n- ", match.start(), at)
        elif name in _BLOCKS:
            out.put("\n\n", match.start(), at)
    _keep_words(out, source, at, len(source))
    return out.done()


def _keep_words(out: _Builder, source: str, start: int, end: int) -> None:
    """Keep text between tags; a line break there is a blank."""
    at = start
    for match in _SPACES.finditer(source, start, end):
        out.keep(at, match.start())
        out.put(" ", match.start(), match.end())
        at = match.end()
    out.keep(at, end)


_FENCE = re.compile(r"[ ]{0,3}(```+|~~~+)")
_RULE = re.compile(r"\s*(?:[-*_=]\s*){3,}$|\s*\|?[\s:|-]+\|[\s:|-]*$")
LONGEST_RULE = 1000  # characters
_INLINE = re.compile(
    r"!\[[^\[\]\n]*\]\([^()\n]*\)"  # an image
    r"|\[([^\[\]\n]+)\](?:\([^()\n]*\)|\[[^\[\]\n]*\])"  # a link
    r"|<(https?://[^<>\s]+)>|</?[a-zA-Z][^<>\n]*>|<!--[^<\n]*?-->"
    r"|(\*\*\*|\*\*|__|~~)(?=\S)|(?<=\S)(\*\*\*|\*\*|__|~~)"
    r"|(?<![\w*])[*_](?=[^\s*_])|(?<=[^\s*_])[*_](?![\w*])|`+"
    r"|\\([\\`*_{}\[\]()#+.!>|-])"
)


def _front_matter(lines: list[str]) -> int:
    """How many lines are about the page: from a rule in the first one to the rule that ends it."""
    if lines[0] != "---":
        return 0
    ends = (n for n, line in enumerate(lines[1:], 2) if line.strip() in ("---", "..."))
    return next(ends, 0)


def _read_markdown(source: str) -> PlainText:
    out, at, fence = _Builder(source), 0, ""
    lines = source.split("\n")
    header = _front_matter(lines)
    for number, line in enumerate(lines):
        end = at + len(line)
        opened = _FENCE.match(line)
        if number < header:
            pass
        elif opened and (not fence or opened[1].startswith(fence)):
            fence = "" if fence else opened[1][:3]
            out.put("\n", at, end)
        elif fence:
            pass
        elif len(line) < LONGEST_RULE and _RULE.match(line):
            out.put("\n", at, end)
        else:
            _keep_inline(out, source, at, end)
            out.put("\n", end, min(end + 1, len(source)))
            if line.lstrip().startswith("#"):
                out.put("\n", end, min(end + 1, len(source)))
        at = end + 1
    return out.done()


def _keep_inline(out: _Builder, source: str, start: int, end: int) -> None:
    at = start
    for match in _INLINE.finditer(source, start, end):
        if match.start() < at:
            continue
        out.keep(at, match.start())
        for group in (1, 2, 5):
            if match[group]:
                out.keep(*match.span(group))
        at = match.end()
    out.keep(at, end)
