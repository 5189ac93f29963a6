"""Damaged ARPA files are read as a plain parser reads them or refused, and never do harm.

`python tests/ngram/test_arpa_fuzz.py SECONDS [SEED]` goes on for that long; with
NUMBA_BOUNDSCHECK=1 and a SEQLOOM_CACHE of its own the compiled loops check every index.
"""

from __future__ import annotations

import math
import random
import re
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import pytest

from seqloom.errors import DataError
from seqloom.ngram import arpa_lines
from seqloom.ngram.arpa import read_arpa, write_arpa
from seqloom.ngram.levels import Ngrams

WORDS = [b"a", b"b", b"the", b"sentence", b"sentences", b"sixteen-letters!", b"<unk>", b"<s>",
         b"</s>", b"<UNK>", b"-1.5", b"1", b"\xe8\xaa\x9e", b"\xff\xfe", b"x" * 40,
         b"x" * 39 + b"y", b"\x0b", b"\\end\\", b"\\2-grams:", b"nan"]  # fmt: skip
PIECES = [b"\t", b" ", b"\n", b"\r\n", b"\\", b"-", b".", b"e", b"-99", b"-inf", b"nan",
          b"1e5", b"0", b"9" * 30, b"\\end\\\n", b"\\2-grams:\n", b"\\data\\\n", b"ngram 2=3\n",
          b"\0", b"\xff", b"1e-7", b"-1e-300", b"-0.0", b"+", b"<unk>", b"a", b"the ",
          b"x" * 300]  # fmt: skip


def made(rng: random.Random) -> bytes:
    """A sound file, at times with contexts missing."""
    words = rng.sample(WORDS, rng.randint(1, len(WORDS)))
    order = rng.choice([1, 2, 2, 3, 3, 3, 4, 5, 8])
    levels: list[list[tuple[bytes, ...]]] = [[(word,) for word in words]]
    for k in range(2, order + 1):
        gaps = rng.random() < 0.3
        found = set()
        for _ in range(rng.choice([0, 1, 3, 10, 40, 150])):
            if gaps:
                found.add(tuple(rng.choice(words) for _ in range(k)))
            elif levels[-1]:
                found.add((*rng.choice(levels[-1]), rng.choice(words)))
        levels.append(rng.sample(sorted(found), len(found)))
    blank, end = rng.choice([b"\t", b" ", b" \t "]), rng.choice([b"\n", b"\r\n"])
    rows = [b"a title"] * rng.randint(0, 1) + [b"\\data\\"]
    rows += [b"ngram %d=%d" % (k, len(level)) for k, level in enumerate(levels, 1)]
    for k, level in enumerate(levels, 1):
        rows += [b""] * rng.randint(0, 1) + [b"\\%d-grams:" % k]
        for ngram in level:
            line = [number(rng, 0), b" ".join(ngram)]
            if rng.random() < 0.8:
                line.append(number(rng, rng.choice([0, 0, 0, 3])))
            rows.append(blank.join(line))
    return end.join([*rows, b"", b"\\end\\", b""])


def number(rng: random.Random, most: float) -> bytes:
    value = rng.uniform(-7, most)
    form = rng.choice(["{:.7f}", "{:.3g}", "{:.2e}", "{:.17g}", "{:.0f}", "-99", "-inf"])
    return form.format(value).encode()


def damaged(text: bytes, rng: random.Random) -> bytes:
    """The text with some changes, of bytes or of lines."""
    for _ in range(rng.choice([0, 1, 1, 1, 2, 3, 10])):
        at, other = sorted(rng.randrange(len(text) + 1) for _ in "ab")
        kind = rng.randrange(9)
        lines = text.split(b"\n")
        i, j = rng.randrange(len(lines)), rng.randrange(len(lines))
        if kind == 0:
            text = text[:at]
        elif kind == 1 and at < len(text):
            text = text[:at] + bytes([text[at] ^ 1 << rng.randrange(8)]) + text[at + 1 :]
        elif kind == 2:
            text = text[:at] + rng.choice(PIECES) + text[at:]
        elif kind == 3:
            text = text[:at] + text[min(other, at + rng.choice([1, 5, 100])) :]
        elif kind == 4:
            lines.insert(i, lines[j])
            text = b"\n".join(lines)
        elif kind == 5:
            lines[i], lines[j] = lines[j], lines[i]
            text = b"\n".join(lines)
        elif kind == 6:
            del lines[i]
            text = b"\n".join(lines)
        elif kind == 7:
            fields = re.split(rb"([ \t]+)", lines[i])
            fields[rng.randrange(len(fields))] = rng.choice([*PIECES, *WORDS])
            text = b"".join(fields).join(
                [b"\n".join([*lines[:i], b""]), b"\n".join([b"", *lines[i + 1 :]])]
            )
        else:
            text = re.sub(
                rb"=\d+", lambda m: b"=%d" % rng.choice([0, 1, 2, 3, 10**17]), text, count=1
            )
    return text


def plain(text: bytes) -> list[dict[tuple[bytes, ...], tuple[float, float]]]:
    """What a file that was accepted says, read as simply as can be."""
    levels: list[dict[tuple[bytes, ...], tuple[float, float]]] = []
    started = False
    for line in (line.strip(b" \t\r") for line in text.split(b"\n")):
        started = started or line.removeprefix(b"\xef\xbb\xbf") == b"\\data\\"
        if started and re.fullmatch(rb"\\\d-grams:", line):
            levels.append({})
        elif line == b"\\end\\" and levels:
            break
        elif levels and line:
            prob, *fields = re.split(rb"[ \t\r]+", line)
            words, weight = tuple(fields[: len(levels)]), fields[len(levels) :] or [b"0"]
            assert words not in levels[-1] and len(words) == len(levels) and len(weight) == 1
            values = [float(prob), float(weight[0])]
            levels[-1][words] = tuple(-math.inf if v <= -99 else v for v in values)
    if (b"<unk>",) not in levels[0] and (b"<UNK>",) in levels[0]:
        small = {b"<UNK>": b"<unk>"}
        levels = [
            {tuple(small.get(w, w) for w in k): v for k, v in level.items()} for level in levels
        ]
    for word in (b"<unk>", b"<s>", b"</s>"):
        levels[0].setdefault((word,), (-math.inf, 0.0))
    return levels


def score(
    levels: list[dict[tuple[bytes, ...], tuple[float, float]]], ngram: tuple[bytes, ...]
) -> float:
    found = levels[len(ngram) - 1].get(ngram)
    if found:
        return found[0]
    weight = levels[len(ngram) - 2].get(ngram[:-1], (0.0, 0.0))[1]
    return weight + score(levels, ngram[1:])


def check(model: Ngrams, text: bytes) -> None:
    """What was read is what the plain parser reads, and contexts that no probability changes."""
    expected = plain(text)
    pool = [word.encode("utf-8", "surrogateescape") for word in model.words]
    assert pool[:3] == [b"<unk>", b"<s>", b"</s>"] and len(set(pool)) == len(pool)
    assert model.order == len(expected)
    below: list[tuple[bytes, ...]] = [()]
    added, all_here, whole = 0, [{()}], True
    for k, level in enumerate(model.levels, 1):
        assert len(level.context) == (len(level) if k > 1 else 0)
        assert len(level.backoff) == (len(level) if k < model.order else 0)
        contexts = level.context.tolist() if k > 1 else [0] * len(level)
        here = [(*below[c], pool[w]) for c, w in zip(contexts, level.word.tolist(), strict=True)]
        assert len(set(here)) == len(here) and set(expected[k - 1]) <= set(here)
        for row, ngram in enumerate(here):
            prob = float(level.prob[row])
            assert not math.isnan(prob) and prob <= 0
            weight = float(level.backoff[row]) if k < model.order else None
            if ngram in expected[k - 1]:
                old = expected[k - 1][ngram]
                assert prob == pytest.approx(min(old[0], 0), rel=1e-12, abs=1e-300)
                assert weight is None or weight == pytest.approx(old[1], rel=1e-12, abs=1e-300)
            else:
                added += 1
                assert (
                    prob == pytest.approx(min(score(expected, ngram), 0), abs=1e-5) and weight == 0
                )
        whole = whole and all(ngram[1:] in all_here[-1] for ngram in here)
        all_here.append(set(here))
        below = here
    assert model.suffixes == whole
    assert model.about["added_contexts"] == added


def one_case(seed: str, path: Path) -> str:
    """Make, damage, read and check a file; returns what became of it."""
    rng = random.Random(seed)
    text = made(rng)
    broken = damaged(text, rng)
    path.write_bytes(broken)
    arpa_lines._BLOCK = rng.choice([700, 1000, 5000, 1 << 16])
    arpa_lines.MAX_LINE = 600
    try:
        model = read_arpa(path)
    except DataError as error:
        assert error.line is not None and 1 <= error.line <= broken.count(b"\n") + 1
        assert len(str(error)) < 1000
        sound = broken == text and b"e-" not in text  # added contexts may be above 0
        assert not sound or "backing off" in str(error) or "log-probability" in str(error), error
        return re.sub(r"\d+|(got|in) '.*'|got .*", "_", error.message)[:40]
    check(model, broken)
    again = path.with_suffix(".again")
    write_arpa(model, again)
    reread = read_arpa(again)
    assert reread.words.pool.tobytes() == model.words.pool.tobytes()
    for level, old in zip(reread.levels, model.levels, strict=True):
        assert level.context.tolist() == old.context.tolist()
        assert level.word.tolist() == old.word.tolist()
        assert level.prob == pytest.approx(old.prob, abs=6e-8)
        assert level.backoff == pytest.approx(old.backoff, abs=6e-8)
    return "read" if broken != text else "read, not damaged"


@pytest.mark.parametrize("batch", range(4))
def test_damaged_files_are_read_right_or_refused(batch, tmp_path, monkeypatch):
    monkeypatch.setattr(arpa_lines, "_BLOCK", arpa_lines._BLOCK)  # put back at the end
    monkeypatch.setattr(arpa_lines, "MAX_LINE", arpa_lines.MAX_LINE)
    seen = Counter(one_case(f"{batch} {i}", tmp_path / "model.arpa") for i in range(75))
    assert seen["read, not damaged"] and len(seen) > 5


if __name__ == "__main__":
    end, seed, outcomes = time.process_time() + float(sys.argv[1]), 0, Counter[str]()
    with tempfile.TemporaryDirectory() as folder:
        while time.process_time() < end:
            case = f"{sys.argv[2] if len(sys.argv) > 2 else 'long'} {seed}"
            try:
                outcomes[one_case(case, Path(folder) / "model.arpa")] += 1
            except BaseException:
                sys.stderr.write(f"case {case!r}\n")
                raise
            seed += 1
    for outcome, times in outcomes.most_common():
        sys.stdout.write(f"{times:8} {outcome}\n")
    sys.stdout.write(f"{seed:8} cases\n")
