"""Summaries: what is chosen, where it stands, how long it is, and bad input."""

from __future__ import annotations

import json
import pickle
import time
from copy import deepcopy
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seqloom import Summarizer, load
from seqloom.architectures import architectures
from seqloom.errors import ConfigError, DataError, InputError
from seqloom.extract import FEATURES, Length, Reader, choose, feature_table
from seqloom.extract.learning import fit_weights, gains
from seqloom.text import WordTokenizer

ARCHES = [entry.name for entry in architectures("summarize") if entry.is_counted]
NAN = float("nan")
TEXT = (
    "The river flooded the old town on Monday. Rescue boats carried people out of the town. "
    "The mayor said the river had never been so high. Nobody was hurt. "
    "The boats will stay until the river falls. A cake was eaten."
)
CHINESE = (
    "星期一河水淹没了老城。救援船把老城的居民接走。市长说河水从来没有这么高。"
    "没有人受伤。船会留到河水下降。"
)


@pytest.mark.parametrize("arch", ARCHES)
@pytest.mark.parametrize("text", [TEXT, CHINESE], ids=["en", "zh"])
def test_every_architecture_summarizes_both_languages(arch, text):
    summary = Summarizer(arch).summarize(text, sentences=2)
    assert len(summary) == 2
    for sentence in summary:
        assert text[sentence.start : sentence.end] == sentence.text
        assert set(sentence.features) == set(FEATURES)
        assert np.isfinite([sentence.score, *sentence.features.values()]).all()
    assert summary[0].start < summary[1].start


PARTS = st.sampled_from(
    ["Cats sleep. ", "Dogs bark at cats! ", "\r\n", "\n\n", "猫在睡觉。", "😀 ", "👩‍👩‍👧 ", "é",
     "# T\n\n", "- item\n", "“Quoted.” ", "The e\u0301tude of cats. ",
     "\u2028", " ", "x", "İstanbul sleeps. "]
)  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.lists(PARTS, min_size=1, max_size=12).map("".join), min_size=1, max_size=3),
    st.sampled_from(ARCHES),
    st.sampled_from([0.0, 0.5]),
)
def test_offsets_point_at_the_very_text(texts, arch, diversity):
    if not any(text.strip() for text in texts):
        return
    summary = Summarizer(arch).summarize(texts, ratio=1.0, diversity=diversity)
    assert len(summary) >= 1
    places = [(s.document, s.start) for s in summary]
    assert places == sorted(places)
    for sentence in summary:
        assert texts[sentence.document][sentence.start : sentence.end] == sentence.text
    assert len({s.text for s in summary}) == len(summary)


def test_the_best_sentence_is_the_best_connected_one():
    assert "river" in Summarizer("textrank").summarize(TEXT, sentences=1).text
    assert (
        Summarizer("lead").summarize(TEXT, sentences=1).text
        == "The river flooded the old town on Monday."
    )
    last = Summarizer("textrank").summarize(TEXT, ratio=1.0)
    assert min(last, key=lambda s: s.score).text in ("A cake was eaten.", "Nobody was hurt.")


def test_lengths():
    model = Summarizer()
    assert len(model.summarize(TEXT)) == 5
    assert len(model.summarize(TEXT, ratio=0.5)) == 3
    assert len(model.summarize(TEXT, ratio=0.01)) == 1
    words = model.summarize(TEXT, words=12)
    assert len(words) >= 1 and sum(len(s.text.split()) for s in words) <= 12
    characters = model.summarize(TEXT, characters=60)
    assert len(characters) >= 1 and sum(len(s.text) for s in characters) <= 60
    assert len(model.summarize(TEXT, words=1)) == 0, "no sentence of one word: none fits"
    assert len(model.summarize(TEXT, words=12, sentences=1)) == 1
    scores = [s.score for s in model.summarize(TEXT, ratio=1.0)]
    above = model.summarize(TEXT, threshold=1.1)
    assert len(above) == sum(score >= 1.1 * np.mean(scores) for score in scores) > 0
    cut = WordTokenizer("zh").words
    found = model.summarize(CHINESE, words=8)
    assert 0 < sum(len(cut(s.text.rstrip("。"))) for s in found) <= 8


def test_of_sentences_equal_but_for_rounding_the_earlier_is_chosen():
    reader = Reader()
    document = reader.read(TEXT)
    scores = np.array([0.5, 1 / 3, 0.1 + 0.2, 0.3, 0.1, 0.3 - 1e-16])
    assert scores[2] > scores[3] > scores[5]
    found = choose(document, scores[::-1].copy(), Length(sentences=3), reader)
    assert found == [0, 4, 5]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sentences": 0}, "sentences must be a whole number of at least 1, got 0"),
        ({"words": 1.5}, "words must be a whole number of at least 1, got 1.5"),
        ({"ratio": 1.5}, r"ratio must lie in \(0, 1\], got 1.5"),
        ({"threshold": -1}, "threshold must not be negative, got -1"),
        ({"words": 5, "characters": 5}, "got words=5 and characters=5"),
        ({"diversity": 2}, "diversity must lie between 0 and 1, got 2"),
        ({"query": "river", "query_weight": 2}, "query_weight must lie between 0 and 1, got 2"),
        ({"sentences": NAN}, "sentences must be a whole number of at least 1, got nan"),
        ({"sentences": 2.0}, "sentences must be a whole number of at least 1, got 2.0"),
        ({"words": "x"}, "words must be a whole number of at least 1, got 'x'"),
        ({"characters": [3]}, r"characters must be a whole number of at least 1, got \[3\]"),
        ({"ratio": "1"}, r"ratio must lie in \(0, 1\], got '1'"),
        ({"ratio": 0}, r"ratio must lie in \(0, 1\], got 0"),
        ({"threshold": NAN}, "threshold must not be negative, got nan"),
        ({"diversity": "x"}, "diversity must lie between 0 and 1, got 'x'"),
        ({"diversity": NAN}, "diversity must lie between 0 and 1, got nan"),
        ({"query": "river", "query_weight": None}, "query_weight must lie .*, got None"),
    ],
)
def test_wrong_limits_are_refused(options, message):
    with pytest.raises(ConfigError, match=message):
        Summarizer().summarize(TEXT, **options)


def test_a_window_may_be_wider_than_a_text():
    assert Summarizer().keywords(TEXT, window=10**9) == Summarizer().keywords(TEXT, window=1000)


def test_every_sentence_is_scored_those_that_repeat_too():
    text = "Cats sleep a lot. Dogs bark. Cats sleep a lot. Fish swim near cats."
    model = Summarizer("textrank")
    found = model.every_sentence(text, query="dogs")
    assert [each.index for each in found] == [0, 1, 2, 3]
    chosen = model.summarize(text, ratio=1.0, query="dogs")
    assert [each.index for each in chosen] == [0, 1, 3]
    assert [found[each.index].score for each in chosen] == [each.score for each in chosen]
    assert found[2].score == pytest.approx(found[0].score)


def test_half_a_surrogate_pair_does_not_end_a_summary():
    text = CHINESE.replace("。", "\ud800。", 1)
    found = Summarizer().summarize(text, sentences=2)
    assert all(text[each.start : each.end] == each.text for each in found)


def test_wrong_settings_are_refused():
    with pytest.raises(ConfigError, match="did you mean 'textrank'"):
        Summarizer("textrnk")
    with pytest.raises(ConfigError, match=r"damping must lie in \[0, 1\), got 1.0"):
        Summarizer("textrank", damping=1.0)
    with pytest.raises(ConfigError, match="unknown feature 'lenght'; did you mean 'length'"):
        Summarizer("features", weights={"lenght": 1.0})
    for wrong in (NAN, float("inf"), -1.0):
        with pytest.raises(ConfigError, match=f"threshold must not be negative, got {wrong}"):
            Summarizer("textrank", threshold=wrong)
    with pytest.raises(ConfigError, match=r"tolerance must be above 0.*got nan"):
        Summarizer("textrank", tolerance=NAN)
    with pytest.raises(ConfigError, match="weight of length must be a finite number, got nan"):
        Summarizer("features", weights={"length": NAN})
    with pytest.raises(ConfigError, match=r"l2 must not be negative.*got nan"):
        Summarizer("features", l2=NAN)
    for window in (2.5, 1, "3"):
        with pytest.raises(ConfigError, match="window must be a whole number of at least 2"):
            Summarizer().keywords(TEXT, window=window)
    with pytest.raises(ConfigError, match=r"count must be a whole number of at least 1, got 2.5"):
        Summarizer().keywords(TEXT, 2.5)
    with pytest.raises(ConfigError, match="threads must be at least 1, got 0"):
        list(Summarizer().summarize_all([TEXT], threads=0))


def greedy(scores, cosines, count, delta):
    """MMR, step by step."""
    chosen: list[int] = []
    scaled = scores / scores.max()
    while len(chosen) < count:
        rest = [i for i in range(len(scores)) if i not in chosen]
        value = {
            i: (1 - delta) * scaled[i] - delta * max((cosines[i, j] for j in chosen), default=0.0)
            for i in rest
        }
        chosen.append(max(rest, key=lambda i: (value[i], -i)))
    return sorted(chosen)


@pytest.mark.parametrize("delta", [0.3, 0.7])
def test_diversity_is_maximal_marginal_relevance(delta):
    from seqloom.extract import reference

    chance = np.random.default_rng(4)
    words = [f"w{chr(97 + i)}" for i in range(12)]
    sentences = [" ".join(chance.choice(words, 6)) + "." for _ in range(20)]
    text = "\n\n".join(sentences)
    reader = Reader()
    document = reader.read(text)
    names = [document.terms[i] for i in document.ids]
    terms = [names[a:b] for a, b in zip(document.offsets, document.offsets[1:], strict=False)]
    model = Summarizer("textrank")
    scores = model.model_.scores(document)
    expected = greedy(scores, reference.cosines(terms), 6, delta)
    found = [s.index for s in model.summarize(text, sentences=6, diversity=delta)]
    assert found == expected


def test_near_copies_are_not_chosen_together_with_diversity():
    copies = "The red fox ran over the hill today. The red fox ran over the hill again. "
    text = copies + "The red fox met a blue bear. Trees grow slowly in a cold wind."
    plain = Summarizer("lexrank").summarize(text, sentences=2)
    apart = Summarizer("lexrank").summarize(text, sentences=2, diversity=0.7)
    assert {s.index for s in plain} == {0, 1}
    assert {0, 1} - {s.index for s in apart}


def test_a_query_steers():
    model = Summarizer("textrank")
    assert (
        model.summarize(TEXT, sentences=1, query="cake", query_weight=1.0).text
        == "A cake was eaten."
    )
    assert "救援船" in model.summarize(CHINESE, sentences=1, query="居民", query_weight=1.0).text
    with pytest.raises(InputError, match=r"must share a word with the text.*'zebra'"):
        model.summarize(TEXT, query="zebra")


def test_several_documents_are_summarized_together():
    texts = [
        "The river flooded the town.",
        "Cakes are sweet. The river flooded the fields of the town.",
    ]
    summary = Summarizer("textrank").summarize(texts, sentences=2)
    assert [(s.document, s.text) for s in summary] == [
        (0, "The river flooded the town."),
        (1, "The river flooded the fields of the town."),
    ]
    # Each text's first sentence comes before any second one.
    assert {s.start for s in Summarizer("lead").summarize(texts, sentences=2)} == {0}


def test_a_stream_is_summarized_in_order_on_several_threads():
    texts = [f"{TEXT} The {word} is here." for word in ("cat", "dog", "fox", "cow", "hen") * 8]
    model = Summarizer()
    alone = [model.summarize(text, sentences=3).text for text in texts]
    assert [s.text for s in model.summarize_all(iter(texts), threads=3, sentences=3)] == alone
    assert [s.text for s in model.summarize_all(texts, threads=1, sentences=3)] == alone


def test_summaries_show_themselves():
    summary = Summarizer("lead").summarize("One is < two. Three is four.", sentences=1)
    assert str(summary) == "One is < two."
    assert summary.highlight() == "[[One is < two.]] Three is four."
    assert "<mark>One is &lt; two.</mark>" in summary._repr_html_()
    assert Summarizer("lead").summarize(CHINESE, sentences=2).text == CHINESE[:23]


# -- keywords ------------------------------------------------------------------------------------


def test_keywords_equal_networkx_on_neighboring_words():
    networkx = pytest.importorskip("networkx", reason="networkx is the independent source here")
    pytest.importorskip("scipy", reason="networkx computes PageRank with scipy")
    found = Summarizer(reading={"stem": False}).keywords(TEXT, 50, phrases=False)
    graph = networkx.Graph()
    reader = Summarizer(reading={"stem": False})._reader
    for sentence in TEXT.split(". "):
        terms = reader.terms(sentence)
        for a, b in pairwise(terms):
            if a != b:
                weight = graph.get_edge_data(a, b, {"weight": 0})["weight"]
                graph.add_edge(a, b, weight=weight + 1)
    ranks = networkx.pagerank(graph, tol=1e-12, max_iter=1000)
    scores = {k.text.lower(): k.score for k in found}
    assert scores.pop("hurt") == pytest.approx(0.15), "it has no neighbor"
    assert set(scores) == set(ranks)
    total = sum(scores.values())
    assert {k: v / total for k, v in scores.items()} == pytest.approx(ranks, abs=1e-6)


def test_keywords_join_into_phrases():
    text = (
        "Machine learning is fun. We like machine learning at home. "
        "Learning needs time, and machine learning wants data."
    )
    found = Summarizer().keywords(text, 2)
    assert found[0].text.lower() == "machine learning" and found[0].occurrences == 3
    assert "河水" in [k.text for k in Summarizer().keywords(CHINESE, 5)]


# -- learning ------------------------------------------------------------------------------------


def test_gains_by_hand():
    document = Reader().read("The cat sat. A dog ran off.")
    found = gains(document, ["the cat sat there", "nothing"])
    np.testing.assert_allclose(found, [(3 / 3 + 2 / 2) / 2, 0.0])
    found = gains(document, ["a cat ran off"])
    np.testing.assert_allclose(found, [(1 / 3 + 0) / 2, (3 / 4 + 1 / 3) / 2])


def examples(seed: int, count: int) -> list[tuple[str, str]]:
    """Texts whose summary is their last sentence, which begins with a cue."""
    chance = np.random.default_rng(seed)
    words = ["".join(chance.choice(list("bcdfgaeiou"), 5)) for _ in range(200)]
    made = []
    for _ in range(count):
        lines = [" ".join(chance.choice(words, 6)).capitalize() + "." for _ in range(6)]
        place = int(chance.integers(6))
        lines[place] = "Finally " + lines[place].lower()
        made.append((" ".join(lines), lines[place]))
    return made


def test_fitted_weights_find_what_summaries_have_in_common():
    model = Summarizer("features").fit(examples(1, 60))
    test = examples(2, 30)
    right = sum(model.summarize(text, sentences=1).text == summary for text, summary in test)
    assert right >= 29
    unfitted = Summarizer("features")
    wrong = sum(unfitted.summarize(text, sentences=1).text == summary for text, summary in test)
    assert wrong < 20


def test_weights_are_those_of_least_squares():
    pairs = [(Reader().read(text), [summary]) for text, summary in examples(3, 12)]
    learned = fit_weights(pairs, l2=0.5, keywords=20)
    # The same by numpy's own least squares, the penalty being rows of their own; without cues,
    # which are tested above.
    kept = [name for name in FEATURES if name != "cues"]
    x, y = [], []
    for document, references in pairs:
        table = feature_table(document)
        columns = np.stack([table[name] for name in kept], 1)
        spread = columns.std(0)
        x.append((columns - columns.mean(0)) / np.where(spread > 1e-12, spread, 1))
        gain = gains(document, references)
        y.append(gain - gain.mean())
    big = np.concatenate([*x, np.sqrt(0.5) * np.eye(len(kept))])
    target = np.concatenate([*y, np.zeros(len(kept))])
    residual = target - big @ np.linalg.lstsq(big, target, rcond=None)[0]
    cue = learned.weights["cues"]
    assert cue > 0
    assert set(learned.weights) == set(FEATURES) and "finally" in learned.cues
    # With one feature more the fit is at least as close.
    assert np.square(residual).sum() >= _loss(pairs, learned, 0.5) - 1e-9


def _loss(pairs, learned, l2) -> float:
    """The penalized loss of weights with the cue words taken as they were learned."""
    total = l2 * sum(w * w for w in learned.weights.values())
    for document, references in pairs:
        table = feature_table(document, cues=learned.cues)
        predicted = np.zeros(len(document))
        for name, weight in learned.weights.items():
            spread = table[name].std()
            predicted += (
                weight * (table[name] - table[name].mean()) / (spread if spread > 1e-12 else 1)
            )
        gain = gains(document, references)
        total += np.square(gain - gain.mean() - predicted).sum()
    return float(total)


def test_document_frequencies_are_counted_by_document():
    model = Summarizer("tfidf").fit(["Cats sleep. Cats eat.", "Dogs sleep.", "Fish swim."])
    assert model.model_.idf["cat"] == pytest.approx(np.log(3))
    assert model.model_.idf["sleep"] == pytest.approx(np.log(3 / 2))
    found = model.summarize("Dogs sleep. Wolves hunt.", ratio=1.0)
    assert found[0].score == pytest.approx((np.log(3) + np.log(3 / 2)) / 2)
    assert found[1].score == pytest.approx(np.log(3)), "unknown terms are as rare as the rarest"


def test_what_cannot_be_learned_is_refused():
    with pytest.raises(ConfigError, match="arch='lead' learns nothing"):
        Summarizer("lead").fit(["x"])
    with pytest.raises(InputError, match="every text must have a summary"):
        Summarizer("features").fit(["A text. Of two."])
    with pytest.raises(InputError, match="got 1 for 2 texts"):
        Summarizer("features").fit(["a", "b"], ["c"])
    with pytest.raises(InputError, match="at least two sentences"):
        Summarizer("features").fit([("One.", "One.")])
    with pytest.raises(InputError, match="got int"):
        Summarizer("tfidf").fit([3])


@pytest.mark.parametrize("arch", ARCHES)
def test_saved_and_loaded_it_is_the_same(arch, tmp_path):
    model = Summarizer(arch, reading={"numbers": True})
    if arch in ("features", "tfidf", "lexrank"):
        model.fit(examples(5, 10))
    model.save(tmp_path / "m")
    again = load(tmp_path / "m")
    a, b = model.summarize(TEXT, ratio=1.0), again.summarize(TEXT, ratio=1.0)
    assert [s.score for s in a] == [s.score for s in b]
    assert again.shapes() == model.shapes()
    assert again._reader.config.numbers
    (tmp_path / "m" / "learned.json").write_text("{}")
    with pytest.raises(DataError, match="cut"):
        load(tmp_path / "m")


def test_the_command_line_fits_one_too(tmp_path):
    from typer.testing import CliRunner

    from seqloom.cli import app

    lines = [json.dumps({"source": a, "target": b}) for a, b in examples(6, 12)]
    (tmp_path / "pairs.jsonl").write_text("\n".join(lines), encoding="utf-8")
    arguments = ["--task", "summarize", "--arch", "features", "--train"]
    result = CliRunner().invoke(
        app, ["train", *arguments, str(tmp_path / "pairs.jsonl"), "--out", str(tmp_path / "m")]
    )
    assert result.exit_code == 0, result.output
    expected = Summarizer("features").fit(examples(6, 12))
    assert load(tmp_path / "m").model_.weights == expected.model_.weights
    with pytest.raises(ConfigError, match="training belongs to models trained by gradients"):
        Summarizer("features", training={"epochs": 3})
    with pytest.raises(ConfigError, match="resume belongs to models trained by gradients"):
        expected.fit(examples(6, 12), resume=True)


def test_parameters_can_be_read_and_set():
    model = Summarizer("textrank", damping=0.5)
    assert model.get_params()["damping"] == 0.5
    model.set_params(damping=0.0)
    assert {s.score for s in model.summarize(TEXT, ratio=1.0)} == {1.0}
    model.set_params(arch="lead")
    assert model.summarize(TEXT, sentences=1)[0].index == 0


@pytest.mark.parametrize("arch", ARCHES)
def test_copies_and_pickles_summarize_alike(arch):
    model = Summarizer(arch)
    expected = model.summarize(TEXT, sentences=2).text
    for other in (deepcopy(model), pickle.loads(pickle.dumps(model)), deepcopy(Summarizer(arch))):
        assert other.summarize(TEXT, sentences=2).text == expected
        assert other.summarize("Новые words. 新词也有。 Of another text.", sentences=1)


# -- bad input -----------------------------------------------------------------------------------

LONG = 1_000_000
BAD = {
    "one sentence": "Only one sentence here.",
    "one word": "Hello",
    "no boundary": "word " * (LONG // 5),
    "no blank": "x" * LONG,
    "no Chinese boundary": "我们的国家" * (LONG // 25),
    "only stops": "." * LONG,
    "only blank lines between words": "a b\n\n" * (LONG // 20),
    "only stop words": "The of and. It is the. They were.",
    "markup": "<p><b>" * 20_000,
    "unclosed quotes": '<a "' * 20_000,
    "brackets": "[" * 100_000 + "](" * 50_000,
    "mixed": "English is here. 中文在这里。 Русский текст. 日本語です。 한국어 문장.",
    "odd characters": "".join(map(chr, range(1, 3000))),
    "emoji": "😀😀😀 👍🏽! 👩‍👩‍👧.",
    "surrogates": "half \ud800 of a pair. And more.",
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_gives_a_result_and_never_hangs(name):
    from seqloom.extract import read_markup

    text = BAD[name]
    began = time.process_time()
    for arch in ("textrank", "lexrank", "features"):
        summary = Summarizer(arch).summarize(text, sentences=3)
        assert 1 <= len(summary) <= 3
        assert all(text[s.start : s.end] == s.text for s in summary)
    Summarizer().keywords(text, 3)
    for markup in ("html", "markdown"):
        read_markup(text, markup)
    assert time.process_time() - began < 30


def test_the_same_sentence_a_thousand_times_is_chosen_once():
    summary = Summarizer().summarize("The cat sat on the mat. " * 1000, sentences=5)
    assert [(s.text, s.start) for s in summary] == [("The cat sat on the mat.", 0)]
    assert summary.total == 1000


def test_summaries_can_be_pickled_with_their_features():
    text = "The river flooded the town. Boats left the flooded town. A cake was eaten there."
    summary = Summarizer().summarize(text, sentences=2)
    same = pickle.loads(pickle.dumps(summary))
    assert str(same) == str(summary) and list(same) == list(summary)
    assert [each.as_row() for each in same] == [each.as_row() for each in summary]
    assert same.highlight() == summary.highlight()
