"""Counted language models from the command line."""

from __future__ import annotations

import json
import lzma
import math
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from seqloom.cli import app
from seqloom.cli.ngram import SMOOTHING_NAMES
from seqloom.cli.ngram_options import join_numbers
from seqloom.errors import ConfigError, DataError, SeqloomError
from seqloom.ngram import stores
from seqloom.ngram.arpa import read_arpa
from seqloom.ngram.estimation import estimate
from seqloom.ngram.methods import SMOOTHINGS
from seqloom.ngram.model import NgramModel
from seqloom.ngram.unpack import read_ngrams, unpack
from seqloom.ngram.workspace import Workspace
from seqloom.resources import SHAKESPEARE, read_embedded

SCRIPT = str(Path(sys.executable).with_name("seqloom"))
LINES = [line for line in read_embedded(SHAKESPEARE).splitlines() if line.strip()]


def run(*arguments, **options):
    """A process of its own, as a shell starts it."""
    return subprocess.run(
        [SCRIPT, *map(str, arguments)], capture_output=True, text=True, check=False, **options
    )


def invoke(*arguments):
    """The same in this process, which starts sooner; standard input cannot be read."""
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def done(*arguments):
    result = invoke(*arguments)
    if result.exception is not None:
        raise result.exception
    return result


def told(result):
    """Standard error, but for what the first run says of compiling."""
    lines = result.stderr.splitlines()
    return [line for line in lines if "compiling for this machine" not in line]


def entries(text):
    """An ARPA file as {n-gram: (log10 p, log10 back-off)}; what `<s>` has for p means nothing."""
    found = {}
    for line in text.splitlines():
        fields = line.split("\t")
        if len(fields) >= 2:
            prob = 0.0 if fields[1] == "<s>" else float(fields[0])
            found[fields[1]] = prob, float(fields[2]) if len(fields) > 2 else 0.0
    return found


def same_entries(found, expected, tolerance=2e-6):
    assert found.keys() == expected.keys()
    keys = list(found)
    np.testing.assert_allclose(
        [found[key] for key in keys], [expected[key] for key in keys], atol=tolerance, rtol=0
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A text, its model as ARPA and as both kinds of store, and another text."""
    place = tmp_path_factory.mktemp("ngram")
    (place / "text.txt").write_text("\n".join(LINES[:2000]) + "\n", encoding="utf-8")
    (place / "other.txt").write_text("\n".join(LINES[2000:2200]) + "\n", encoding="utf-8")
    text = place / "text.txt"
    done("ngram", "estimate", text, "--store", place / "hashed", "--arpa", place / "m.arpa")
    done("ngram", "convert", place / "m.arpa", place / "trie", "--kind", "trie")
    return place


class TestEstimate:
    @pytest.fixture
    def golden(self, shared_data):
        place = shared_data / "lmplz-golden"
        return lambda name: lzma.open(place / f"{name}.xz", "rt", encoding="utf-8").read()

    def test_takes_the_place_of_lmplz(self, golden):
        result = run("ngram", "estimate", "-o", 3, input=golden("shakespeare.txt"))
        assert result.returncode == 0, result.stderr
        same_entries(entries(result.stdout), entries(golden("shakespeare.o3.arpa")))
        assert "4,000 lines" in result.stderr

    @pytest.mark.parametrize(
        ("options", "expected"),
        [
            ("--order 3 --prune 0 0 1 --vocab_estimate 5000", "shakespeare.o3.prune001.arpa"),
            ("--interpolate_unigrams 0 -o 3 -S 80%", "shakespeare.o3.nounigraminterp.arpa"),
        ],
    )
    def test_understands_how_lmplz_spells_it(self, golden, tmp_path, options, expected):
        (tmp_path / "text").write_text(golden("shakespeare.txt"), encoding="utf-8")
        files = ["--text", tmp_path / "text", "--arpa", tmp_path / "arpa", "-T", tmp_path]
        assert done("ngram", "estimate", *options.split(), *files).stdout == ""
        found = entries((tmp_path / "arpa").read_text(encoding="utf-8"))
        same_entries(found, entries(golden(expected)))

    def test_several_texts_count_as_one(self, folder, tmp_path):
        whole = (folder / "text.txt").read_text(encoding="utf-8").splitlines(keepends=True)
        (tmp_path / "a").write_text("".join(whole[:700]), encoding="utf-8")
        (tmp_path / "b").write_text("".join(whole[700:]), encoding="utf-8")
        result = done("ngram", "estimate", tmp_path / "a", tmp_path / "b")
        same_entries(entries(result.stdout), entries((folder / "m.arpa").read_text("utf-8")), 0)

    def test_settings_reach_the_estimation(self, folder, tmp_path):
        (tmp_path / "words").write_text("the king of\n")
        arguments = [folder / "text.txt", "-o", 2, "--vocabulary", tmp_path / "words"]
        smoothing = ["--smoothing", "add-delta", "--delta", 0.5]
        done("ngram", "estimate", *arguments, *smoothing, "--store", tmp_path / "m")
        expected = NgramModel.of(
            estimate(
                folder / "text.txt",
                order=2,
                vocabulary=tmp_path / "words",
                smoothing="add-delta",
                delta=0.5,
            )
        )
        assert list(expected.words) == ["<unk>", "<s>", "</s>", "the", "king", "of"]
        found = NgramModel.load(tmp_path / "m")
        assert found.score("the king of France") == expected.score("the king of France")

    def test_weights_and_discounts_are_lists(self, folder):
        text = folder / "text.txt"
        mixture = done(
            *("ngram", "estimate", text, "-o", 2, "--smoothing", "jelinek-mercer"),
            *("--weights", 0.7, 0.2),
        )
        kneser = done("ngram", "estimate", text, "-o", 2, "--discounts", "auto", *DISCOUNTS)
        for result, options in (
            (mixture, {"smoothing": "jelinek-mercer", "weights": [0.7, 0.2]}),
            (kneser, {"discounts": [None, (0.5, 0.75, 1)]}),
        ):
            model = estimate(text, order=2, **options)
            written = entries(result.stdout)
            for row in range(200):
                level = model.levels[1]
                words = (model.words[int(n)] for n in (level.context[row], level.word[row]))
                found, _ = written[" ".join(words)]
                assert found == pytest.approx(level.prob[row], abs=1e-7)

    def test_a_terminal_is_no_place_for_a_model(self, folder):
        ours, theirs = pty.openpty()
        try:
            result = subprocess.run(
                [SCRIPT, "ngram", "estimate", str(folder / "text.txt")],
                stdout=theirs,
                stderr=subprocess.PIPE,
                text=True,
                check=False,
            )
        finally:
            os.close(ours)
            os.close(theirs)
        assert result.returncode == 1
        assert "--arpa FILE or --store FILE" in result.stderr
        assert len(told(result)) == 1

    def test_a_reader_that_goes_away_is_no_error(self, folder):
        command = f"{SCRIPT} ngram estimate -o 5 {folder / 'text.txt'} | head -n 1"
        result = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True)
        assert result.stdout == "\\data\\\n"
        assert "Traceback" not in result.stderr

    def test_help_names_every_smoothing(self):
        assert set(SMOOTHING_NAMES.split(", ")) == set(SMOOTHINGS)

    def test_help_loads_not_even_numpy(self):
        code = (
            "import sys; from seqloom.cli import app\n"
            "for verb in (['ngram', 'estimate'], ['ngram', 'query'], ['filter']):\n"
            "    app([*verb, '--help'], standalone_mode=False)\n"
            "sys.exit('numpy' in sys.modules)"
        )
        result = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
        assert result.returncode == 0, result.stderr


DISCOUNTS = ("--discounts", 0.5, 0.75, 1)


@pytest.mark.parametrize(
    ("given", "joined"),
    [
        ("--prune 0 0 1 text", ["--prune", "0 0 1", "text"]),
        ("--prune=0 text", ["--prune=0", "text"]),
        ("-o 3 4", ["-o", "3", "4"]),
        ("--discount_fallback -o 3", ["--discount-fallback", "0.5 1 1.5", "-o", "3"]),
        ("--discount_fallback 0.4 1 2", ["--discount-fallback", "0.4 1 2"]),
        ("--skip_symbols a", ["--symbols=skip", "a"]),
        ("--interpolate_unigrams a", ["--interpolate-unigrams", "a"]),
        ("--interpolate_unigrams=0 a", ["--no-interpolate-unigrams", "a"]),
        ("--temp_prefix /tmp/", ["--temporary", "/tmp/"]),
        ("--sort_block 64M a", ["a"]),
        ("a --prune", ["a", "--prune"]),
        ("--weights 1 -- 2 --prune 3 4", ["--weights", "1", "--", "2", "--prune", "3", "4"]),
    ],
)
def test_numbers_after_an_option_are_one_value(given, joined):
    assert join_numbers(given.split()) == joined


def words_of(line):
    """[(word, number, order, log10 p)] and the rest of a line of `query`."""
    *items, rest = line.split("\t")
    parsed = [re.fullmatch(r"(.*)=(\d+) (\d) (\S+)", item).groups() for item in items]
    return [(w, int(i), int(o), float(p)) for w, i, o, p in parsed], rest


class TestQuery:
    def test_every_number_is_kenlms(self, folder):
        kenlm = pytest.importorskip("kenlm")
        oracle = kenlm.Model(str(folder / "m.arpa"))
        lines = (folder / "other.txt").read_text(encoding="utf-8").splitlines()
        *found, a, b, c, d = done(
            "ngram", "query", folder / "m.arpa", folder / "other.txt"
        ).stdout.splitlines()
        total = unknown_total = unknown = tokens = 0
        for text, line in zip(lines, found, strict=True):
            words, rest = words_of(line)
            assert [word for word, *_ in words] == [*text.split(), "</s>"]
            scores = list(oracle.full_scores(text))
            for (_, number, order, prob), (log10, length, oov) in zip(words, scores, strict=True):
                assert (order, number == 0) == (length, oov)
                assert prob == pytest.approx(log10, abs=1e-5)
            tokens += len(scores)
            unknown += sum(oov for *_, oov in scores)
            total += sum(log10 for log10, *_ in scores)
            unknown_total += sum(log10 for log10, _, oov in scores if oov)
            value, oovs = re.fullmatch(r"Total: (\S+) OOV: (\d+)", rest).groups()
            assert float(value) == pytest.approx(sum(log10 for log10, *_ in scores), abs=1e-4)
            assert int(oovs) == sum(oov for *_, oov in scores)
        including, excluding = 10 ** (-total / tokens), None
        excluding = 10 ** (-(total - unknown_total) / (tokens - unknown))
        assert a.startswith("Perplexity including OOVs:\t")
        assert float(a.split("\t")[1]) == pytest.approx(including, rel=1e-5)
        assert b.startswith("Perplexity excluding OOVs:\t")
        assert float(b.split("\t")[1]) == pytest.approx(excluding, rel=1e-5)
        assert (c, d) == (f"OOVs:\t{unknown}", f"Tokens:\t{tokens}")

    def test_arpa_and_store_say_the_same(self, folder):
        arpa, hashed = (
            done("ngram", "query", folder / name, folder / "other.txt", "-v", "summary").stdout
            for name in ("m.arpa", "hashed")
        )
        one, two = (float(text.split()[3]) for text in (arpa, hashed))
        assert one == pytest.approx(two, rel=1e-6)  # ARPA rounds to seven decimals
        trie = done("ngram", "query", folder / "trie", folder / "other.txt", "-v", "summary").stdout
        assert float(trie.split()[3]) == pytest.approx(one, rel=0.02)

    def test_parts_are_chosen(self, folder):
        def shown(*parts):
            options = [option for part in parts for option in ("-v", part)]
            text = done("ngram", "query", folder / "hashed", folder / "other.txt", *options).stdout
            return text.splitlines()

        everything = shown()
        assert shown("word", "sentence", "summary") == everything
        assert shown("word", "sentence") == everything[:-4]
        assert shown("sentence") == [line.split("\t")[-1] for line in everything[:-4]]
        assert shown("word") == [line.rpartition("\t")[0] for line in everything[:-4]]
        assert shown("summary") == everything[-4:]

    def test_json_is_an_object_a_line(self, folder):
        arguments = ["ngram", "query", folder / "hashed", folder / "other.txt"]
        *rows, summary = map(json.loads, done(*arguments, "--json").stdout.splitlines())
        *lines, including, _, _, tokens = done(*arguments).stdout.splitlines()
        for row, line in zip(rows, lines, strict=True):
            words, rest = words_of(line)
            assert [(w["word"], w["id"], w["order"]) for w in row["words"]] == [
                word[:3] for word in words
            ]
            assert rest == f"Total: {row['log10']:.8g} OOV: {row['oov']}"
        assert summary["perplexity"] == float(including.split("\t")[1])
        assert summary["tokens"] == int(tokens.split("\t")[1])

    def test_odd_lines(self, folder):
        text = "First\tCitizen:\r\n\n<s> First </s> <unk> \0x\xa0y\nno end"
        result = run("ngram", "query", folder / "hashed", input=text, encoding="utf-8")
        *lines, _, _, _, tokens = result.stdout.splitlines()
        assert [[word for word, *_ in words_of(line)[0]] for line in lines] == [
            ["First", "Citizen:", "</s>"],
            ["</s>"],
            ["First", "<unk>", "x\xa0y", "</s>"],
            ["no", "end", "</s>"],
        ]
        assert tokens == "Tokens:\t11"

    def test_no_text_has_no_perplexity(self, folder):
        result = run("ngram", "query", folder / "hashed", input="")
        assert result.stdout == (
            "Perplexity including OOVs:\tNaN\nPerplexity excluding OOVs:\tNaN\n"
            "OOVs:\t0\nTokens:\t0\n"
        )

    def test_answers_a_line_at_once(self, folder):
        with subprocess.Popen(
            [SCRIPT, "ngram", "query", str(folder / "hashed"), "-v", "sentence"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        ) as process:
            for _ in range(2):
                process.stdin.write(b"First Citizen:\n")
                process.stdin.flush()
                assert process.stdout.readline().startswith(b"Total: ")
            process.stdin.close()

    def test_a_model_directory_names_its_store(self, folder, tmp_path):
        (tmp_path / "model").mkdir()
        (tmp_path / "model" / "notes.txt").write_text("notes")
        with pytest.raises(DataError, match="got 0"):
            done("ngram", "stats", tmp_path / "model")
        (tmp_path / "model" / "store").write_bytes((folder / "hashed").read_bytes())
        found = done("ngram", "query", tmp_path / "model", folder / "other.txt").stdout
        assert found == done("ngram", "query", folder / "hashed", folder / "other.txt").stdout


class TestConvert:
    @pytest.mark.parametrize("name", ["back.arpa", "back.arpa.gz", "back.arpa.zst"])
    def test_there_and_back(self, folder, tmp_path, name):
        done("ngram", "convert", folder / "m.arpa", tmp_path / "store")
        done("ngram", "convert", tmp_path / "store", tmp_path / name)
        before, after = read_arpa(folder / "m.arpa"), read_arpa(tmp_path / name)
        assert spelled(after) == spelled(before)

    def test_to_standard_output(self, folder):
        text = done("ngram", "convert", folder / "hashed", "-").stdout
        same_entries(entries(text), entries((folder / "m.arpa").read_text("utf-8")), 0)

    def test_a_trie_comes_back_as_it_is(self, folder, tmp_path):
        done("ngram", "convert", folder / "trie", tmp_path / "hashed", "--kind", "hashed")
        small, fast = NgramModel.load(folder / "trie"), NgramModel.load(tmp_path / "hashed")
        assert fast.about["kind"] == "hashed"
        np.testing.assert_allclose(fast.score(LINES[:300]), small.score(LINES[:300]), rtol=1e-12)

    def test_the_kind_may_differ_from_the_name(self, folder, tmp_path):
        done("ngram", "convert", folder / "hashed", tmp_path / "x.arpa", "--kind", "trie")
        assert NgramModel.load(tmp_path / "x.arpa").about["kind"] == "trie"

    def test_a_file_can_take_its_own_place(self, folder, tmp_path):
        (tmp_path / "m").write_bytes((folder / "hashed").read_bytes())
        done("ngram", "convert", tmp_path / "m", tmp_path / "m", "--kind", "trie")
        assert NgramModel.load(tmp_path / "m").about["kind"] == "trie"

    def test_columns_may_lie_in_files(self, folder):
        place = Workspace()
        place.spilling = True
        assert spelled(unpack(folder / "hashed", place)) == spelled(unpack(folder / "hashed"))

    @pytest.mark.parametrize("order", [1, 2, 5])
    def test_unpacking_undoes_packing(self, tmp_path, order):
        ngrams = estimate(LINES[:300], order=order, say=lambda _: None)
        stores.write_store(ngrams, tmp_path / "m", "hashed", Workspace())
        again = read_ngrams(tmp_path / "m")
        assert spelled(again) == spelled(ngrams)
        assert (again.suffixes, again.about) == (ngrams.suffixes, ngrams.about)

    def test_n_grams_that_name_nothing_are_refused(self, folder, tmp_path):
        packed = stores.open_packed(folder / "hashed")
        cells, size = packed.tables.cells.copy(), int(packed.tables.starts[1])
        first = next(i for i in range(3 * size, len(cells), 3) if cells[i])
        for key in (np.uint64(size << 32) + np.uint64(1), np.uint64(size + 1)):
            cells[first] = key  # a context, then a word, beyond the vocabulary
            tables = packed.tables._replace(cells=cells, values=cells.view(np.float64))
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(stores, "open_packed", lambda _, t=tables: packed._replace(tables=t))
                with pytest.raises(DataError, match="do not fit together; build it again"):
                    unpack(tmp_path)


def spelled(ngrams):
    """A model as {words: (p, back-off)}, whatever the order of its rows."""
    words, found, below = list(ngrams.words), {}, [()]
    for level in ngrams.levels:
        contexts = level.context if len(level.context) else np.zeros(len(level), int)
        here = [
            (*below[context], words[word])
            for context, word in zip(contexts.tolist(), level.word.tolist(), strict=True)
        ]
        backoffs = level.backoff.tolist() or [0.0] * len(level)
        found |= dict(zip(here, zip(level.prob.tolist(), backoffs, strict=True), strict=True))
        below = here
    return found


class TestStats:
    def test_a_store(self, folder):
        facts = json.loads(done("ngram", "stats", folder / "hashed", "--json").stdout)
        model = NgramModel.load(folder / "hashed")
        size = (folder / "hashed").stat().st_size
        assert facts["ngrams"] == model.sizes
        assert (facts["order"], facts["kind"], facts["bytes"]) == (3, "hashed", size)
        assert facts["bytes an n-gram"] == size / sum(model.sizes)
        assert facts["vocabulary"] == len(model.words)
        assert facts["smoothing"] == "modified-kneser-ney"
        assert [len(each) for each in facts["discounts"]] == [3, 3, 3]

    def test_an_arpa_file(self, folder):
        facts = json.loads(done("ngram", "stats", folder / "m.arpa", "--json").stdout)
        assert facts["ngrams"] == NgramModel.load(folder / "hashed").sizes
        assert facts["kind"] == "arpa"

    def test_a_table_for_people(self, folder):
        shown = done("ngram", "stats", folder / "trie").stdout
        for words in ("3-grams", "trie", "modified-kneser-ney"):
            assert (words in shown) == (words != "modified-kneser-ney")  # ARPA does not tell


def test_prune_leaves_out_what_matters_least(folder, tmp_path):
    result = invoke("ngram", "prune", folder / "hashed", "--entropy", 1e-5)
    assert result.exception is None
    kept, all_ = entries(result.stdout), entries((folder / "m.arpa").read_text("utf-8"))
    assert 0 < len(kept) < len(all_)
    assert kept.keys() < all_.keys()
    assert f"of {len(read_ngrams(folder / 'hashed').levels[2]):,} n-grams kept" in result.stderr
    done("ngram", "prune", folder / "m.arpa", "--entropy", 1e-5, "--store", tmp_path / "m")
    assert sum(NgramModel.load(tmp_path / "m").sizes) == pytest.approx(len(kept), abs=3)


@pytest.fixture(scope="module")
def other(folder):
    done("ngram", "estimate", folder / "other.txt", "--store", folder / "other")
    return folder / "other"


class TestMix:
    def test_weights(self, folder, other, tmp_path):
        result = done(
            *("ngram", "mix", folder / "hashed", other, "--weights", 0.75, 0.25),
            *("--store", tmp_path / "both"),
        )
        assert f"weight 0.750000: {folder / 'hashed'}" in result.stderr
        first, second, both = map(NgramModel.load, (folder / "hashed", other, tmp_path / "both"))
        # A word that begins sentences in both texts: a bigram of both models.
        word = "I"
        p, q, mixed = (math.exp(m.score_words(word)[0].log_prob) for m in (first, second, both))
        assert mixed == pytest.approx(0.75 * p + 0.25 * q, rel=1e-4)

    def test_held_out_text_prefers_its_like(self, folder, other, tmp_path):
        result = done(
            *("ngram", "mix", folder / "hashed", other, "--held-out", folder / "text.txt"),
            *("--arpa", tmp_path / "both.arpa"),
        )
        first = float(re.search(r"weight (\S+): .*hashed", result.stderr)[1])
        assert first > 0.9
        assert read_arpa(tmp_path / "both.arpa").order == 3

    def test_what_cannot_be_mixed(self, folder):
        with pytest.raises(ConfigError, match="got 1"):
            done("ngram", "mix", folder / "hashed")
        for options in ([], ["--weights", 0.5, 0.5, "--held-out", "c"]):
            with pytest.raises(ConfigError, match="use --weights or --held-out"):
                done("ngram", "mix", "a", "b", *options)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("estimate nothing.txt", "nothing.txt: no such file"),
        ("estimate text.txt --order 9", "got 9"),
        ("estimate text.txt --smoothing knesser-ney", "did you mean 'kneser-ney'"),
        ("estimate text.txt --delta 1", "'delta'"),
        ("estimate text.txt --prune 0.5", "got '0.5'"),
        ("estimate text.txt --prune many", "got 'many'"),
        ("estimate text.txt --prune 1 0", "got [1, 0]"),
        ("estimate text.txt --memory plenty", "got 'plenty'"),
        ("estimate text.txt --memory 300%", "got '300%'"),
        ("estimate text.txt --temporary nowhere", "got 'nowhere'"),
        ("estimate text.txt --vocabulary nowords", "nowords: no such file"),
        ("estimate text.txt --smoothing stupid-backoff", "use --store alone"),
        ("estimate text.txt --store nowhere/m", "nowhere/m: cannot be written"),
        ("estimate text.txt --store .", "this is a folder"),
        ("query nothing text.txt", "nothing: no such file"),
        ("query hashed nothing", "nothing: no such file"),
        ("query text.txt text.txt", "text.txt"),
        ("query cut.arpa text.txt", "cut.arpa:"),
        ("query damaged text.txt", "damaged: the store was altered"),
        ("query - -", "cannot both come"),
        ("convert nothing out.arpa", "nothing: no such file"),
        ("convert damaged out.arpa", "altered"),
        ("convert hashed nowhere/m.arpa", "nowhere"),
        ("convert hashed nowhere/m", "nowhere/m: cannot be written"),
        ("stats cut.arpa", "cut.arpa:"),
        ("prune nothing --entropy 1e-8", "nothing: no such file"),
    ],
)
def test_bad_input_is_named(folder, monkeypatch, arguments, message):
    monkeypatch.chdir(folder)
    data = bytearray(Path("hashed").read_bytes())
    data[len(data) // 2] ^= 1
    Path("damaged").write_bytes(data)
    Path("cut.arpa").write_bytes(Path("m.arpa").read_bytes()[:5000])
    before = sorted(path.name for path in folder.iterdir())
    with pytest.raises(SeqloomError) as caught:
        done("ngram", *arguments.split())
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert sorted(path.name for path in folder.iterdir()) == before


def test_a_store_takes_the_place_of_plain_files_alone(folder, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for arguments in (
        ["estimate", folder / "text.txt", "--store", tmp_path / "pipe"],
        ["convert", folder / "m.arpa", tmp_path / "pipe", "--kind", "trie"],
    ):
        with pytest.raises(DataError, match="plain file, got a pipe or a device"):
            done("ngram", *arguments)
    assert (tmp_path / "pipe").is_fifo()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is full")
@pytest.mark.parametrize(
    "arguments",
    [
        "ngram convert m.arpa -",
        "ngram query m.arpa text.txt",
        "filter text.txt -m m.arpa --below 9e9",
    ],
)
def test_a_full_disk_is_one_line(folder, arguments):
    with Path("/dev/full").open("wb") as full:
        result = subprocess.run(
            [SCRIPT, *arguments.split()],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            cwd=folder,
        )
    assert result.returncode == 1
    assert told(result) == ["seqloom: standard output cannot be written (No space left on device)"]


def test_errors_exit_with_1_and_bad_usage_with_2(folder):
    result = run("ngram", "query", folder / "m.arpa", folder / "nothing")
    assert (result.returncode, result.stdout) == (1, "")
    assert told(result) == [f"seqloom: {folder / 'nothing'}: no such file; check the path"]
    for arguments in (["estimat"], ["query"], ["query", "m", "-v", "wrod"], ["prune", "m"]):
        assert invoke("ngram", *arguments).exit_code == 2
