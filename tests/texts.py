"""Texts for properties: everything Unicode allows, and English and Chinese as they are typed."""

from __future__ import annotations

from hypothesis import strategies as st

TRICKY = (
    [chr(code) for code in (*range(0x00, 0x21), 0x7F, 0x85, 0xA0, 0xAD)]
    + list("\u1680\u180e\u2000\u200b\u200d\u2028\u2029\u202f\u2060\u3000\ufeff")  # blanks or not
    + list("\u0301\u0307\u0323\u0338\u3099\u093c\u1161\u11a8\ufe0f\u20e3")  # join what is before
    + list("aAnNtTsIJ.,:;!?'’\"“”‘`-_&@#$%()[]{}/<>…~+=*\\|^«»10")
    + list("中国北京我爱天。，！？、：；（）《》「」【】“”０Ａｆ．かカﾊﾞ가각")
    + list("éÉñŉﬁ½²Ⅳ℃ÅΩΣσςİıßẞǅDŽẛ가\U0001d15e\U0002f800")
    + ["😀", "👍", "🏽", "👩", "❤", "🇨", "🇳", "\U00020000", "\U0010ffff"]
    + ["n't", "'s", "www.", "http://", "a@b.c", "U.S.", "Mr.", "...", "--", "<s>", "</s>", "<unk>"]
)
any_character = st.characters(exclude_categories=["Cs"])
any_text = st.lists(st.one_of(any_character, st.sampled_from(TRICKY)), max_size=40).map("".join)

_plain = st.text("abcdefghijklmnopqrstuvwxyz", min_size=1, max_size=9)
_english_word = st.one_of(
    _plain,
    _plain.map(str.capitalize),
    st.tuples(_plain, _plain).map("-".join),
    st.tuples(_plain, st.sampled_from(["'s", "’s", "'ll", "'re", "’ve", "'d"])).map("".join),
    st.sampled_from(
        "I I'm don't can't won't isn't shouldn't've didn’t o'clock Mr. Dr. Inc. etc. U.S. e.g. "
        "a.m. Ph.D. U.S.-based J. AT&T R&D café naïve Zürich 7 1,000 3.14 12:30 1/2 1990s 20-year "
        "3rd 10,000th $5 $3.50 £20 US$7 50% 2.5% #1 and/or @user #tag jo@example.org "
        "https://example.org/a?b=c 7.5-inch -5 .5 😀".split()
    ),
)


@st.composite
def english(draw) -> str:
    """English typed in the usual way, as the promise of `WordTokenizer` describes it."""
    parts = []
    for _ in range(draw(st.integers(1, 4))):
        words = draw(st.lists(_english_word, min_size=1, max_size=7))
        left, right = draw(
            st.sampled_from([("", ""), ('"', '"'), ("“", "”"), ("(", ")"), ("[", "]"), ("{", "}")])
        )
        inner = draw(st.sampled_from(["", ",", ".", "!", "?", "...", "…"]))
        if words[-1].endswith("."):
            inner = ""
        outer = draw(st.sampled_from(["", ",", ".", ";", ":", "!", "?", " --", " —", " &"]))
        parts.append(left + " ".join(words) + inner + right + (outer if right else ""))
    return " ".join(parts)


_han = st.text(
    "的一是不了在人有我他这中大来上国个到说们为子和你地出道也时年得就那要下以生会自着去之过家学对"
    "可她里后小么心多天而能好都然没日于起还发成事只作当想看文无开手用主行方又如前所本见经头面公同三已老从"
    "北京上海清华大学电影漂亮",
    min_size=1,
    max_size=8,
)
_latin = st.lists(
    st.one_of(
        st.from_regex(r"[A-Za-z][a-z]{0,7}", fullmatch=True),
        st.sampled_from("GPU LSTM iPhone HTML5 R2D2".split()),
        st.integers(0, 99999).map(str),
    ),
    min_size=1,
    max_size=3,
).map(" ".join)
_mark = st.sampled_from([*"，。！？、；：“”‘’（）《》—…·", "……", "——"])


@st.composite
def chinese(draw) -> str:
    """Chinese with blanks only between two words of ASCII letters or digits.

    The dictionary knows words such as "N年", so capitals inside words are those of real ones.
    """
    parts, last = [draw(_han)], "han"
    for _ in range(draw(st.integers(0, 6))):
        kinds = [kind for kind in ("han", "latin", "mark") if (kind, last) != ("latin", "latin")]
        last = draw(st.sampled_from(kinds))
        parts.append(draw({"han": _han, "latin": _latin, "mark": _mark}[last]))
    return "".join(parts)
