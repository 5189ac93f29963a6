"""Modified Kneser-Ney against files written by KenLM's lmplz, and known perplexities."""

from __future__ import annotations

import lzma

import pytest
from bruteforce import as_dict, number_words, perplexity, to_ids, train
from numpy.testing import assert_allclose

# What `lmplz -o 5` prints for this text.
PTB_DISCOUNTS = [
    [0.25656, 0.82888, 1.26492],
    [0.727802, 1.09876, 1.4713],
    [0.868879, 1.25462, 1.44822],
    [0.942828, 1.38314, 1.43173],
    [0.959671, 1.3879, 1.24171],
]


def read_text(path):
    content = path.read_bytes()
    return (lzma.decompress(content) if path.suffix == ".xz" else content).decode()


def read_arpa(text):
    """The sizes an ARPA file states, and every n-gram with its two numbers."""
    sizes, ngrams = [], {}
    for line in text.splitlines():
        if line.startswith("ngram "):
            sizes.append(int(line.split("=")[1]))
        elif "\t" in line:
            prob, words, *backoff = line.split("\t")
            ngrams[tuple(words.split(" "))] = (float(prob), float(backoff[0]) if backoff else 0.0)
    return sizes, ngrams


@pytest.mark.parametrize(
    ("text", "model", "order", "options"),
    [
        ("shakespeare.txt.xz", "shakespeare.o2", 2, {}),
        ("shakespeare.txt.xz", "shakespeare.o3", 3, {}),
        ("shakespeare.txt.xz", "shakespeare.o4", 4, {}),
        ("shakespeare.txt.xz", "shakespeare.o5", 5, {}),
        ("shakespeare.txt.xz", "shakespeare.o3.prune001", 3, {"prune": (0, 0, 1)}),
        (
            "shakespeare.txt.xz",
            "shakespeare.o3.nounigraminterp",
            3,
            {"interpolate_unigrams": False},
        ),
        ("tiny.txt", "tiny.o2.fallback", 2, {}),
        ("tiny.txt", "tiny.o3.fallback", 3, {}),
    ],
    ids=lambda value: value if isinstance(value, str) and ".o" in value else "",
)
def test_every_ngram_is_as_lmplz_has_it(shared_data, text, model, order, options):
    golden = shared_data / "lmplz-golden"
    sizes, expected = read_arpa(read_text(golden / f"{model}.arpa.xz"))
    sentences = [line.split() for line in read_text(golden / text).splitlines()]
    ngrams = train(sentences, order, "modified-kneser-ney", **options)
    assert ngrams.sizes == sizes
    found = as_dict(ngrams)
    assert found.keys() == expected.keys()
    ours = [found[ngram] for ngram in expected]
    assert_allclose(ours, list(expected.values()), rtol=0, atol=1e-5)


def read_lines(path, unknown):
    text = read_text(path).replace("<unk>", unknown)
    return [line.split() for line in text.splitlines() if line.strip()]


@pytest.mark.parametrize(
    ("train_set", "test_set", "order", "unknown", "expected"),
    [
        ("ptb/ptb.train.txt.xz", "ptb/ptb.test.txt.xz", 3, "UNK", 148.281),
        ("ptb/ptb.train.txt.xz", "ptb/ptb.test.txt.xz", 3, "<unk>", 148.281),
        ("ptb/ptb.train.txt.xz", "ptb/ptb.test.txt.xz", 5, "UNK", 141.186),
        ("wikitext-2/wiki.train.tokens.xz", "wikitext-2/wiki.valid.tokens.xz", 5, "UNK", 239.984),
    ],
    ids=["ptb-3", "ptb-3-unk", "ptb-5", "wikitext-2"],
)
def test_perplexity_is_that_of_lmplz(shared_data, train_set, test_set, order, unknown, expected):
    sentences = read_lines(shared_data / train_set, unknown)
    ngrams = train(sentences, order, "modified-kneser-ney")
    ids = to_ids(read_lines(shared_data / test_set, unknown), number_words(sentences))
    assert perplexity(ngrams, ids) == pytest.approx(expected, abs=0.001)


def test_discounts_and_sizes_of_the_penn_treebank(shared_data):
    sentences = read_lines(shared_data / "ptb/ptb.train.txt.xz", "UNK")
    ngrams = train(sentences, 5, "modified-kneser-ney")
    assert ngrams.sizes == [10002, 264990, 586558, 717733, 737952]
    assert_allclose(ngrams.about["discounts"], PTB_DISCOUNTS, atol=1e-5)
