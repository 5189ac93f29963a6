"""The studio, used as a person would, in both languages."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from at_hand import missing

from seqloom import load
from seqloom.nn.cells import LSTM
from seqloom.tasks.recipe import shipped_recipes
from seqloom.tasks.summarizer import Summarizer

in_english = pytest.mark.parametrize("person", ["en"], indirect=True)
in_chinese = pytest.mark.parametrize("person", ["zh"], indirect=True)

TITLES = {
    "read": ("Read", "阅读"),
    "summarize": ("Summarize", "摘要"),
    "complete": ("Complete", "补全"),
    "classify": ("Classify", "分类"),
    "relate": ("Relate", "关系"),
    "tag": ("Tag", "标注"),
    "translate": ("Translate", "翻译"),
    "train": ("Train", "训练"),
    "cells": ("Cells", "循环单元"),
    "league": ("League", "排行"),
}


def expect(locator):
    """Wait until something holds."""
    import playwright.sync_api as browsers

    browsers.expect.set_options(timeout=60_000)
    return browsers.expect(locator)


def title(view: str, language: str) -> str:
    return TITLES[view][language == "zh"]


def submit(person) -> None:
    """Press the button of a view's form and wait until there is a result."""
    person.page.click("#view form button[type=submit]")
    person.page.wait_for_selector("#view .results .card")


def percent(share: float) -> str:
    """As the page writes it."""
    return f"{100 * share:.{2 if 0 < share < 0.1 else 1}f}%"


def saved(person, selector: str, kind: str) -> str:
    """What is downloaded by pressing a picture's button."""
    with person.page.expect_download() as download:
        person.page.click(f"{selector} button[data-keep={kind}]")
    assert download.value.suggested_filename.endswith(f".{kind}")
    return Path(download.value.path()).read_text(encoding="utf-8")


def shown_code(person, name: str, number: int = 0) -> str:
    """The Python or the curl that the page shows."""
    details = person.page.locator("#view details.same").nth(number)
    if details.get_attribute("open") is None:
        details.locator("summary").click()
    details.locator(f"button:text-is('{name}')").click()
    return str(details.locator("pre").inner_text())


def test_axe_is_at_hand(chromium, axe):
    if axe is None:
        missing("pages are looked at by axe-core: pip install axe-playwright-python")
    assert "axe" in axe


def test_a_question_is_answered_and_marked(person, is_accessible):
    page = person.open("read")
    assert person.text("h1") == title("read", person.language)
    passage = "😀 Ada was born in London. Max was born in Rome."  # one character, two in a browser
    page.fill("#view textarea", passage)
    page.fill("#view form input[type=text]", "Where was Max born?")
    submit(person)
    model = load(person.served.models / "reader")
    best = model.answer(passage, "Where was Max born?")
    assert person.text("#answer").startswith(best.text)
    marked = page.locator("mark:not(.other)").first.evaluate("one => one.firstChild.data")
    assert marked == passage[best.start : best.end]
    data = json.loads(saved(person, "figure[data-name=attention]", "json"))
    assert data["question"][0] == "Where"
    is_accessible()


def test_an_article_is_summarized(person, is_accessible):
    page = person.open("summarize")
    article = "😀 " + page.input_value("#view textarea")
    page.fill("#view textarea", article)
    submit(person)
    wanted = Summarizer("textrank").summarize(article, ratio=0.3)
    assert person.text("#summary") == wanted.text
    marks = page.locator("mark").evaluate_all("all => all.map(one => one.firstChild.data)")
    assert marks == [sentence.text for sentence in wanted]
    written = load(person.served.models / "writer").summarize(article)
    assert page.locator(".results .written").nth(1).inner_text() == written.text
    scores = json.loads(saved(person, "figure[data-name=sentence-scores]", "json"))
    assert len(scores) == wanted.total
    page.locator("input[type=range]").fill("60")
    longer = Summarizer("textrank").summarize(article, ratio=0.6)
    expect(page.locator("mark")).to_have_count(len(longer))
    assert person.text("#summary") == longer.text
    is_accessible()


def test_models_complete_as_one_types(person, is_accessible):
    page = person.open("complete")
    page.fill("#view textarea", "Everyone has the right to")
    trigram = load(person.served.models / "trigram")
    perplexity = f"{trigram.perplexity(PROMPT):,.1f}".removesuffix(".0")
    expect(page.locator("figure[data-name=surprise-trigram] .hint")).to_contain_text(perplexity)
    for name in ("trigram", "lstm", "rnn"):
        model = load(person.served.models / name)
        wanted = [[word, pytest.approx(chance)] for word, chance in model.next(PROMPT, k=8)]
        data = json.loads(saved(person, f"figure[data-name=next-{name}]", "json"))
        assert [[one["word"], one["probability"]] for one in data] == wanted
    page.click("#write")
    expect(page.locator("#written")).to_contain_text("Everyone has the right to")
    is_accessible()


PROMPT = "Everyone has the right to"


@in_english
def test_a_blank_is_filled(person):
    page = person.open("complete")
    page.fill("#view textarea", "Everyone has the ___ to life")
    page.wait_for_selector("figure[data-name=blank-trigram] svg")
    data = json.loads(saved(person, "figure[data-name=blank-trigram]", "json"))
    wanted = load(person.served.models / "trigram").fill("Everyone has the ___ to life", k=8)
    assert [one["word"] for one in data] == [one.word for one in wanted]


def test_a_text_is_classified(person, is_accessible):
    page = person.open("classify")
    page.fill("#view textarea", "Nakamura")
    submit(person)
    wanted = load(person.served.models / "names").classify("Nakamura")
    assert person.text("#label").startswith(f"{wanted.label}")
    assert percent(wanted.probability) in person.text("#label")
    is_accessible()


RUN_ALL = """
import contextlib, io, json, sys
for code in json.load(sys.stdin):
    told = io.StringIO()
    with contextlib.redirect_stdout(told):
        exec(code, {})
    print(json.dumps(told.getvalue()))
"""


@in_english
def test_the_python_and_the_curl_shown_give_the_same(person):
    page, snippets, seen = person.page, {}, {}
    shown = {
        "read": ("", "#answer >> nth=0"),
        "summarize": ("", "mark >> nth=0"),
        "complete": ("figure[data-name=next-trigram] svg", "figure[data-name=next-trigram] text"),
        "classify": ("", "#label"),
        "relate": ("", "#label"),
        "tag": ("", "#view .results td"),
        "translate": ("", "#translation"),
        "cells": ("figure[data-name=lstm-f] svg", ""),
        "league": ("figure[data-name=learning-curves] svg", ""),
    }
    for view, (ready, result) in shown.items():
        person.open(view)
        if ready:
            page.wait_for_selector(ready)
        else:
            submit(person)
        if view == "cells":
            page.wait_for_selector("figure[data-name=gradient-flow] svg")
        if view == "league":
            page.click("#compare")
            page.wait_for_selector("figure[data-name=bits-per-character] svg")
        for number in range(page.locator("#view details.same").count()):
            curl = shown_code(person, "curl", number)
            told = subprocess.run(["bash", "-c", f"{curl} -sf"], capture_output=True, check=True)
            seen[view, number] = json.loads(told.stdout)
            snippets[view, number] = shown_code(person, "Python", number)
        if result:
            first = page.locator(result).first.evaluate("one => one.firstChild.data")
            seen[view] = first.split(" (")[0].strip()
    snippets.pop(("league", 1))  # it has a directory to fill in
    ran = subprocess.run(
        [sys.executable, "-c", RUN_ALL],
        input=json.dumps(list(snippets.values())),
        cwd=person.served.models,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    printed = dict(zip(snippets, map(json.loads, ran.stdout.splitlines()), strict=True))
    for view, (_, result) in shown.items():
        if result:
            assert seen[view] in printed[view, 0]
    numbers = [float(n) for n in re.findall(r"-?\d+\.\d+(?:e-?\d+)?", printed["cells", 0])]
    for value in seen["cells", 0]["values"]["h_t"][-1]:
        assert any(value == pytest.approx(number, abs=1e-4) for number in numbers)
    change = seen["cells", 1]["change"]["rnn"]
    assert json.loads(printed["cells", 1].replace("'", '"'))["rnn"] == pytest.approx(change)
    bits, perplexity = map(float, printed["league", 0].split())
    assert perplexity == pytest.approx(seen["league", 0]["perplexity"])
    assert bits > 0


def test_entities_are_related(person, is_accessible):
    page = person.open("relate")
    page.fill("#view textarea", "The storm caused a flood .")
    for word, button in (("storm", 0), ("flood", 1)):
        page.locator("#view textarea").evaluate(
            "(field, word) => { const at = field.value.indexOf(word);"
            " field.setSelectionRange(at, at + word.length); }",
            word,
        )
        page.locator("#view form .actions button.chip").nth(button).click()
    marked = page.input_value("#view textarea")
    assert marked == "The <e1>storm</e1> caused a <e2>flood</e2> ."
    submit(person)
    wanted = load(person.served.models / "relations").relate(marked, explain=True)
    assert person.text("#label").startswith(wanted.relation)
    assert " → ".join(wanted.arguments) in person.text("#view .results")
    data = json.loads(saved(person, "figure[data-name=attention]", "json"))
    assert data["weights"] == pytest.approx(list(wanted.explanation.weights), abs=1e-6)
    is_accessible()


def test_words_are_tagged_and_the_picture_is_kept(person, is_accessible):
    page = person.open("tag")
    page.fill("#view textarea", "Marie Curie was born in Warsaw .")
    submit(person)
    wanted = load(person.served.models / "entities").tag("Marie Curie was born in Warsaw .")
    drawing = ElementTree.fromstring(saved(person, "figure[data-name=tags]", "svg"))
    texts = [each.text for each in drawing.iter("{http://www.w3.org/2000/svg}text")]
    assert texts == [part for pair in wanted for part in pair]
    styles = [value for each in drawing.iter() for value in each.attrib.values()]
    assert not any("var(" in value for value in styles), "colours are written out"
    assert all("class" not in each.attrib for each in drawing.iter())
    is_accessible()


def test_a_text_is_translated_and_aligned(person, is_accessible):
    page = person.open("translate")
    page.fill("#view textarea", "I like tea")
    submit(person)
    model = load(person.served.models / "tea")
    wanted = model.translate("I like tea", beam=5, n_best=3, attention=True)
    assert person.text("#translation") == wanted.text
    data = json.loads(saved(person, "figure[data-name=alignment]", "json"))
    assert data["attention"][0] == pytest.approx(wanted.attention[0].tolist(), abs=1e-6)
    is_accessible()


def test_a_table_becomes_a_classifier(person, is_accessible, tmp_path):
    page = person.open("train")
    table = tmp_path / "moods.csv"
    rows = [f"{word} day {i},{label}" for i in range(6) for word, label in MOODS]
    table.write_text("sentence,mood\n" + "\n".join(rows), encoding="utf-8")
    page.set_input_files("#view input[type=file]", table)
    page.wait_for_selector("#view form table")
    page.click("#view form button[type=submit]")
    page.wait_for_selector("#view progress")
    page.wait_for_selector("#view section form", timeout=180_000)
    page.fill("#view section form input", "a good day")
    page.click("#view section form button[type=submit]")
    page.wait_for_selector("#tried")
    assert person.text("#tried") == "happy"
    command = person.text("#view section .command code")
    place = Path(command.removeprefix("seqloom serve "))
    assert load(place).classify("a good day").label == "happy"
    is_accessible()


MOODS = [("good", "happy"), ("bad", "sad"), ("fine", "happy"), ("awful", "sad")]


@in_english
def test_a_table_that_cannot_be_used_is_refused_in_words(person):
    page = person.open("train")
    page.fill("#view textarea", "text,label\nfine,\n")
    page.wait_for_selector("#view form table")
    page.click("#view form button[type=submit]")
    page.wait_for_selector(".status.bad")
    assert "line 2" in person.text(".status.bad")


def test_cells_are_walked_through(person, is_accessible):
    page = person.open("cells")
    page.wait_for_selector("figure[data-name=lstm-f] svg")
    assert page.locator(".equations math").count() == len(LSTM.equations())
    data = json.loads(saved(person, "figure[data-name=lstm-f]", "json"))
    assert len(data["values"]) == len(data["words"])
    first = person.text(".stepper output")
    page.locator(".stepper button").nth(1).click()
    assert person.text(".stepper output") == f"2. {data['words'][1]}" != first
    page.select_option("#view select", "cell:gru")
    page.wait_for_selector("figure[data-name=gru-z] svg")
    page.wait_for_selector("figure[data-name=gradient-flow] svg")
    flow = json.loads(saved(person, "figure[data-name=gradient-flow]", "json"))
    assert len(flow["norms"]["lstm"]) == len(flow["distances"]) == 50
    is_accessible()


def test_runs_are_compared(person, is_accessible):
    page = person.open("league")
    page.wait_for_selector("figure[data-name=learning-curves] svg")
    page.fill("#view textarea", PROMPT)
    page.click("#compare")
    page.wait_for_selector("figure[data-name=bits-per-character] svg")
    data = json.loads(saved(person, "figure[data-name=bits-per-character]", "json"))
    totals = {n: load(person.served.models / n).score(PROMPT).total for n in ("trigram", "lstm")}
    for row in data:
        if row["model"] in totals:
            nats = row["bits"] * 0.6931471805599453 * (len(PROMPT) + 1)
            assert nats == pytest.approx(-totals[row["model"]])
    is_accessible()


def test_language_and_theme_are_switched_and_remembered(person):
    page = person.open("summarize")
    other = "zh" if person.language == "en" else "en"
    page.click(f".switch button[lang^={other}]")
    assert person.text("h1") == title("summarize", other)
    assert page.evaluate("document.documentElement.lang").startswith(other)
    wanted = "dark" if person.language == "en" else "light"
    page.locator(".switch").first.locator("button").nth(2 if wanted == "dark" else 1).click()
    page.reload()
    page.wait_for_selector("html[data-ready=yes] h1")
    assert person.text("h1") == title("summarize", other)
    assert page.evaluate("document.documentElement.dataset.theme") == wanted
    links = page.locator("nav a").all_text_contents()
    assert [link.strip() for link in links] == [title(view, other) for view in TITLES]


def test_the_keyboard_is_enough(person):
    page = person.open("classify")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    if person.language == "zh":  # a phone has its views behind a button
        page.focus("#menu-button")
        page.keyboard.press("Enter")
        assert page.get_attribute("#menu-button", "aria-expanded") == "true"
        page.keyboard.press("Escape")
        assert page.get_attribute("#menu-button", "aria-expanded") == "false"
    page.focus("#view textarea")
    page.keyboard.press("Control+A")
    page.keyboard.type("Smith")
    page.keyboard.press("Control+Enter")
    page.wait_for_selector("#label")
    assert page.locator("[role=status]").first.inner_text()


def test_a_view_without_a_model_says_so_with_a_command(person, is_accessible):
    page = person.page

    def only_textrank(route) -> None:
        answer = json.loads(route.fetch().text())
        kept = [model for model in answer["models"] if model["name"] == "textrank"]
        route.fulfill(json={"models": kept})

    page.route("**/v1/models", only_textrank)
    for view in ("read", "complete", "classify", "relate", "tag", "translate"):
        person.open(view)
        page.wait_for_selector(".nobody")
        found = re.fullmatch(
            r"seqloom reproduce (\S+) --out runs && seqloom serve runs/(\S+)-0",
            person.text(".nobody code"),
        )
        assert found and found[1] == found[2] and found[1] in shipped_recipes()
    is_accessible()


@in_english
def test_a_token_is_asked_for_and_sent(person):
    page, seen = person.page, []

    def guard(route) -> None:
        sent = route.request.headers.get("authorization")
        seen.append(sent)
        refusal = {"error": {"code": "unauthorized", "message": "the token is missing"}}
        route.continue_() if sent else route.fulfill(status=401, json=refusal)

    page.route("**/v1/models", guard)
    page.goto(person.served.address)
    page.fill("dialog input", "open-sesame")
    page.keyboard.press("Enter")
    page.wait_for_selector("html[data-ready=yes] h1")
    assert seen == [None, "Bearer open-sesame"]
    person.wrong.clear()  # the browser itself tells of the refusal


@in_chinese
def test_an_error_of_the_server_is_shown(person):
    page = person.open("classify")
    page.route("**/v1/classify", lambda route: route.abort())
    page.click("#view form button[type=submit]")
    page.wait_for_selector(".status.bad")
    assert person.text(".status.bad") == "服务器没有响应，它还在运行吗？"
    person.wrong.clear()  # the browser itself tells of what was cut
