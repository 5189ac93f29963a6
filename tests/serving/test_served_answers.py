"""What is answered over HTTP is what the library says, alone and among others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from served import Server, events, in_threads

import seqloom
from seqloom import Summarizer
from seqloom.serving import answers
from seqloom.serving.jobs import embed

ARTICLE = "A cat sat on a mat. A dog ran by. The cat saw the dog run. It rained all day."
PASSAGE = "Ada was born in London. Max was born in Rome."
ASKED: list[tuple[str, dict[str, Any], type[answers.Answer]]] = [
    ("score", {"text": "the cat"}, answers.ScoreAnswer),
    ("score", {"text": "the zebra", "model": "lstm"}, answers.ScoreAnswer),
    ("next", {"prompt": "the", "k": 3}, answers.NextAnswer),
    ("generate", {"prompt": "the", "seed": 3}, answers.GenerateAnswer),
    ("fill", {"text": "the ___ sat", "k": 2, "model": "lstm"}, answers.FillAnswer),
    ("fill", {"text": "the ___ sat", "model": "lstm", "right": "back"}, answers.FillAnswer),
    ("classify", {"text": "the cat", "explain": True}, answers.ClassifyAnswer),
    ("relate", {"text": "<e1>a</e1> eats <e2>b</e2>"}, answers.RelateAnswer),
    ("tag", {"text": "the cat", "probabilities": True, "best": 2}, answers.TagAnswer),
    ("summarize", {"text": ARTICLE, "sentences": 1, "explain": True}, answers.SummarizeAnswer),
    ("translate", {"text": "a b", "attention": True}, answers.TranslateAnswer),
    ("answer", {"passage": PASSAGE, "question": "Who?", "k": 2}, answers.AnswerAnswer),
    ("embed", {"words": ["cat", "zebra"], "nearest": 2}, answers.EmbedAnswer),
]


@pytest.fixture(scope="module")
def library(models: dict[str, Path]) -> dict[str, Any]:
    return {name: seqloom.load(place) for name, place in models.items()}


@pytest.mark.parametrize(("name", "asked", "kind"), ASKED)
def test_answers_are_as_they_are_described(
    server: Server, name: str, asked: dict[str, Any], kind: type[answers.Answer]
):
    reply = server.ask(f"/v1/{name}", asked)
    assert reply.status == 200, reply.body
    kind.model_validate(reply.value)
    assert set(reply.value) == set(kind.model_fields)


def test_language_models_say_the_same(server: Server, library: dict[str, Any]):
    for name in ("ngram", "lstm"):
        model = library[name]
        score = server.ask("/v1/score", {"text": "the cat sat", "model": name}).value
        assert score["log_probs"] == pytest.approx(model.score("the cat sat").log_probs)
        words = server.ask("/v1/next", {"prompt": "the", "k": 4, "model": name}).value["words"]
        assert [each["word"] for each in words] == [w for w, _ in model.next("the", 4)]
        asked = {"prompt": "the", "seed": 5, "max_words": 6}
        text = server.ask("/v1/generate", {**asked, "model": name}).value["text"]
        assert text == model.generate(**asked)
    filled = server.ask("/v1/fill", {"text": "the ___ sat", "model": "lstm", "right": "back"})
    expected = library["lstm"].fill("the ___ sat", right=library["back"])
    assert [each["word"] for each in filled.value["words"]] == [each.word for each in expected]


def test_other_tasks_say_the_same(server: Server, library: dict[str, Any]):
    found = server.ask("/v1/classify", {"text": "a dog", "explain": True}).value
    expected = library["kinds"].classify("a dog", explain=True)
    assert found["label"] == expected.label
    assert found["probability"] == pytest.approx(expected.probability)
    assert found["explanation"]["weights"] == pytest.approx(expected.explanation.weights)
    tagged = server.ask("/v1/tag", {"text": "the cat"}).value
    assert tagged["tags"] == list(library["tags"].tag("the cat").tags)
    sentence = "<e1>cats</e1> fear <e2>dogs</e2>"
    related = server.ask("/v1/relate", {"text": sentence}).value
    assert related["label"] == library["relations"].relate(sentence).label
    translated = server.ask("/v1/translate", {"text": "b c", "beam": 2}).value
    assert translated["text"] == library["translator"].translate("b c", beam=2).text
    answered = server.ask("/v1/answer", {"passage": PASSAGE, "question": "Where?"}).value
    best = library["reader"].answer(PASSAGE, "Where?")
    assert (answered["start"], answered["end"]) == (best.start, best.end)
    assert answered["answer"] == PASSAGE[best.start : best.end]
    embedded = server.ask("/v1/embed", {"words": ["cat", "zebra"]}).value
    assert embedded["vectors"][0] == pytest.approx(library["vectors"].embed(["cat"])[0].tolist())
    assert embedded["vectors"][1] is None


def test_words_in_context_have_the_librarys_vectors(server: Server):
    model = seqloom.load("english-elmo")
    words = ["the", "bank", "of", "a", "river"]
    asked = {"words": words, "context": True, "nearest": 0}
    found = embed(model, asked)
    (expected,) = model.embed_sentences([words])
    answers.EmbedAnswer.model_validate({"model": "english-elmo", **found})
    assert np.allclose(found["vectors"], expected.layers.mean(axis=0), atol=1e-6)
    refused = server.ask("/v1/embed", {"words": words, "context": True})  # vectors of words alone
    assert (refused.status, refused.code) == (422, "unusable_input")


def test_a_summary_is_the_librarys_and_says_why(server: Server):
    expected = Summarizer("textrank").summarize(ARTICLE, sentences=2)
    found = server.ask("/v1/summarize", {"text": ARTICLE, "sentences": 2, "explain": True}).value
    assert found["text"] == expected.text
    assert [each["index"] for each in found["sentences"]] == [each.index for each in expected]
    assert [each["index"] for each in found["all"]] == [0, 1, 2, 3]
    assert [each["chosen"] for each in found["all"]].count(True) == 2
    for each in found["all"]:
        assert ARTICLE[each["start"] : each["end"]] == each["text"]


def test_an_explained_summary_has_repeated_sentences_too(server: Server):
    text = "Cats sleep a lot. Dogs bark. Cats sleep a lot. Fish swim near cats."
    found = server.ask("/v1/summarize", {"text": text, "sentences": 2, "explain": True}).value
    assert [each["index"] for each in found["all"]] == [0, 1, 2, 3]
    assert not found["all"][2]["chosen"]


@pytest.mark.parametrize("name", ["ngram", "lstm", "back"])
def test_a_stream_ends_with_what_is_answered_at_once(server: Server, name: str):
    asked = {"prompt": "the", "seed": 3, "max_words": 4, "min_words": 4, "model": name}
    whole = server.ask("/v1/generate", asked).value
    reply = server.ask("/v1/generate", {**asked, "stream": True})
    assert reply.headers["content-type"].startswith("text/event-stream")
    *words, last = events(reply.body)
    assert last == ("done", whole)
    assert [kind for kind, _ in words] == ["word"] * 4
    assert words[-1][1]["text"] == whole["text"]
    assert all(each["word"] in each["text"] for _, each in words)


@pytest.mark.parametrize("name", ["ngram", "lstm", "back"])
@pytest.mark.parametrize("prompt", ["", "the cat"])
@pytest.mark.parametrize("count", [1, 3])
def test_a_stream_sends_the_words_that_were_added(
    server: Server, library: dict[str, Any], name: str, prompt: str, count: int
):
    asked = {"prompt": prompt, "seed": 5, "max_words": count, "min_words": count, "model": name}
    reply = server.ask("/v1/generate", {**asked, "stream": True})
    *words, (_, whole) = events(reply.body)
    sent = [each["word"] for _, each in words]
    text = library[name].reader.words(whole["text"])
    assert sent == text[len(text) - count :]


def test_many_at_once_get_their_own_answers(server: Server, library: dict[str, Any]):
    texts = [f"the {word} sat" for word in ("cat", "dog", "mat", "rug", "a", "zebra")] * 3
    calls = [lambda text=text: server.ask("/v1/classify", {"text": text}) for text in texts]
    found = [reply.value["probability"] for reply in in_threads(calls)]
    expected = [library["kinds"].classify(text).probability for text in texts]
    assert found == pytest.approx(expected, rel=1e-5)


def test_one_bad_text_of_a_batch_spoils_no_other(server: Server):
    good = {"text": "<e1>a</e1> eats <e2>b</e2>"}
    asked = [good, {"text": "no marks"}] * 6
    calls = [lambda each=each: server.ask("/v1/relate", each) for each in asked]
    assert [reply.status for reply in in_threads(calls)] == [200, 422] * 6


def test_models_are_listed_and_the_first_of_a_task_answers(server: Server):
    listed = {each["name"]: each for each in server.ask("/v1/models").value["models"]}
    answers.ModelsAnswer.model_validate(server.ask("/v1/models").value)
    assert listed["ngram"]["default_for"] == ["score", "next", "generate", "fill"]
    assert listed["lstm"]["default_for"] == []
    assert listed["back"]["reverse"] and listed["kinds"]["explains"]
    assert listed["kinds"]["labels"] == ["mat", "none", "rug"]
    assert server.ask("/v1/score", {"text": "a"}).value["model"] == "ngram"


def test_health_readiness_and_metrics(server: Server):
    assert server.ask("/health").value == {"status": "ok", "workers": 1}
    assert server.ask("/ready").value == {"status": "ready", "workers": 1}
    before = (
        server.metric('seqloom_requests_total{endpoint="/v1/score",status="422"}')
        if (b'endpoint="/v1/score",status="422"' in server.ask("/metrics").body)
        else 0
    )
    server.ask("/v1/score", {})
    assert server.metric('seqloom_requests_total{endpoint="/v1/score",status="422"}') == before + 1


def test_openapi_names_every_endpoint(server: Server):
    paths = server.ask("/openapi.json").value["paths"]
    assert {f"/v1/{name}" for name, _, _ in ASKED} | {"/v1/models", "/health"} <= set(paths)
