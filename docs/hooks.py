"""Computes the numbers of the n-gram page, and sets formulas, when the documentation is built.

On the n-gram page, `{{ expression }}` is replaced by its value. The names it may use are those of
`Worked`: counts of a small corpus, and what Seqloom makes of them. `same(a, b)` stops the build if
a number derived on the page is not the one the library gives. Formulas, `$...$` and `$$...$$` on
every page, become MathML, which browsers set without a script; one that cannot be read stops the
build.
"""

from __future__ import annotations

import html
import json
import math
import re
from pathlib import Path
from typing import Any

CORPUS = (
    "the cat sat on the mat",
    "the dog sat on the mat",
    "the cat saw the dog",
    "a dog saw the cat",
)
HELD_OUT = "a cat sat on the dog"
PAGE = "ngram.md"
MARKED = re.compile(
    r'<span class="arithmatex">\\\((?P<inline>.*?)\\\)</span>'
    r'|<div class="arithmatex">\s*\\\[(?P<block>.*?)\\\]\s*</div>',
    re.DOTALL,
)
HERE = Path(__file__).parent


class Worked:
    """The small corpus: its counts by hand, its models by the library."""

    def __init__(self) -> None:
        self.lines = [("<s>", *line.split(), "</s>") for line in CORPUS]
        self.words = sorted({word for line in self.lines for word in line} - {"<s>"})
        self._models: dict[str, Any] = {}

    @property
    def V(self) -> int:  # noqa: N802
        """How many words can come next: those of the corpus, the line's end and `<unk>`."""
        return len(self.words) + 1

    def grams(self, order: int) -> list[tuple[str, ...]]:
        """Every n-gram of an order, as often as it occurs; `<s>` is no unigram."""
        found = [line[i : i + order] for line in self.lines for i in range(len(line) - order + 1)]
        return [gram for gram in found if gram != ("<s>",)]

    def c(self, text: str) -> int:
        """How often an n-gram occurs."""
        gram = tuple(text.split())
        return self.grams(len(gram)).count(gram)

    def N(self) -> int:  # noqa: N802
        """How many words the corpus has, line ends counted."""
        return len(self.grams(1))

    def after(self, history: str) -> int:
        """How many different words follow a history."""
        return len({gram[-1] for gram in self.grams(2) if gram[0] == history})

    def before(self, word: str) -> int:
        """How many different words come before a word."""
        return len({gram[0] for gram in self.grams(2) if gram[1] == word})

    def pairs(self) -> int:
        """How many different pairs of words there are."""
        return len(set(self.grams(2)))

    def n(self, count: int, order: int = 2) -> int:
        """How many n-grams of an order occur exactly so often."""
        grams = self.grams(order)
        return sum(grams.count(gram) == count for gram in set(grams))

    def model(self, smoothing: str, order: int = 2) -> Any:
        """The library's model of the corpus."""
        from seqloom.ngram import NgramModel, estimate

        key = f"{smoothing} {order}"
        if key not in self._models:
            held_out = [HELD_OUT] if smoothing == "jelinek-mercer" else None
            ngrams = estimate(
                CORPUS, order=order, smoothing=smoothing, held_out=held_out, say=[].append
            )
            self._models[key] = NgramModel.of(ngrams)
        return self._models[key]

    def p(self, smoothing: str, history: str, word: str, order: int = 2) -> float:
        """What the library says of a word after a history (empty: order 1)."""
        model = self.model(smoothing, order if history else 1)
        state = model.empty()
        for before in history.split():
            _, state = model.step(state, before)
        return math.exp(model.step(state, word)[0])

    def about(self, smoothing: str, key: str) -> Any:
        """What the library wrote down about a model."""
        return self.model(smoothing).about[key]

    def same(self, derived: float, given: float) -> str:
        """A number, which must be equal both ways."""
        if not math.isclose(derived, given, rel_tol=1e-9, abs_tol=1e-12):
            raise ValueError(f"the page derives {derived}, the library gives {given}")
        return f"{derived:.4f}"

    def table(self) -> str:
        """Every smoothing's distribution after "the", as rows of a table."""
        from seqloom.ngram import SMOOTHINGS

        words = ("cat", "dog", "mat", "sat", "the", "</s>", "<unk>")
        rows = ["| smoothing | " + " | ".join(f"`{w}`" for w in words) + " | sum over all |"]
        rows.append("|---" * (len(words) + 2) + "|")
        for name in SMOOTHINGS:
            values = [self.p(name, "the", word) for word in words]
            total = sum(self.p(name, "the", word) for word in [*self.words, "<unk>"])
            cells = " | ".join(f"{value:.4f}" for value in values)
            rows.append(f"| {name} | {cells} | {total:.4f} |")
        return "\n".join(rows)

    def measured(self) -> str:
        """The table that `benchmarks/ngram_smoothing.py` wrote."""
        found = json.loads((HERE / "figures" / "ptb-smoothing.json").read_text(encoding="utf-8"))
        rows = ["| smoothing | order 1 | order 2 | order 3 | order 4 | order 5 |", "|---" * 6 + "|"]
        for name, values in found.items():
            cells = (f"{v:,.2f}" if isinstance(v, float) else v for v in values)
            rows.append(f"| {name} | {' | '.join(cells)} |")
        return "\n".join(rows)


def on_page_content(content: str, page: Any, **_: Any) -> str:
    """Set the formulas that the extension for formulas has marked."""
    from latex2mathml.converter import convert

    def formula(match: re.Match[str]) -> str:
        text = html.unescape(match["inline"] or match["block"]).strip()
        try:
            found: str = convert(text, display="inline" if match["inline"] else "block")
        except Exception as problem:
            raise ValueError(f"{page.file.src_uri}: {text!r} is no formula: {problem!r}") from None
        if "\\" in found:  # a command that is not known
            raise ValueError(f"{page.file.src_uri}: {text!r} has a command that is not known")
        return found

    return MARKED.sub(formula, content)


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Fill in the numbers."""
    if page.file.src_uri != PAGE:
        return markdown
    worked = Worked()
    names = {name: getattr(worked, name) for name in dir(worked) if not name.startswith("_")}

    def value(match: re.Match[str]) -> str:
        found = eval(match[1], {"__builtins__": {"round": round, "abs": abs, "min": min}}, names)
        return f"{found:.4f}" if isinstance(found, float) else str(found)

    return re.sub(r"\{\{(.+?)\}\}", value, markdown)
