"""Formulas of the documentation: every page's are set, and one that is none stops the build."""

from __future__ import annotations

import importlib.util
import re
from types import SimpleNamespace

import pytest
from markdown import Markdown

from places import REPOSITORY

DOCS = REPOSITORY / "docs"
EXTENSIONS = ["tables", "fenced_code", "pymdownx.arithmatex"]
OPTIONS = {"pymdownx.arithmatex": {"generic": True}}
CODE = re.compile(r"^```.*?^```|`[^`\n]+`", re.DOTALL | re.MULTILINE)
FORMULA = re.compile(r"\$\$.+?\$\$|\$[^$\n]+\$", re.DOTALL)
PAGES = {page.stem: page.read_text(encoding="utf-8") for page in DOCS.glob("*.md")}


def built(text: str) -> str:
    spec = importlib.util.spec_from_file_location("hooks", DOCS / "hooks.py")
    hooks = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(hooks)
    content = Markdown(extensions=EXTENSIONS, extension_configs=OPTIONS).convert(text)
    return hooks.on_page_content(content, SimpleNamespace(file=SimpleNamespace(src_uri="a.md")))


@pytest.mark.parametrize("name", PAGES)
def test_every_formula_of_a_page_is_set(name):
    text = PAGES[name]
    found = built(text)
    assert found.count("<math ") == len(FORMULA.findall(CODE.sub("", text)))
    assert "arithmatex" not in found


def test_there_are_formulas():
    assert built(PAGES["cells"]).count("<math ") > 5


def test_a_formula_is_what_it_says():
    inline, block = "one $x_t < 2$ two", "$$\\frac{a}{b}$$"
    assert "<msub><mi>x</mi><mi>t</mi></msub>" in built(inline)
    assert 'display="inline"' in built(inline) and 'display="block"' in built(block)
    assert "<mfrac><mrow><mi>a</mi></mrow><mrow><mi>b</mi></mrow></mfrac>" in built(block)


@pytest.mark.parametrize("formula", ["a_b_c", "\\nosuchcommand x"])
def test_what_is_no_formula_stops_the_build(formula):
    with pytest.raises(ValueError, match=r"a\.md: .*(is no formula|is not known)"):
        built(f"$${formula}$$")
