"""What an unknown word looks like: its case, digits, hyphens and ending.

Paper: Petrov, Barrett, Thibaux and Klein (2006), "Learning Accurate, Compact, and Interpretable
Tree Annotation"; the classes are in the manner of their parser's signatures, and fewer. Whether a
word begins a sentence is not among them: the model's words do not depend on their place.
"""

from __future__ import annotations

CASES = ("none", "lower", "initial", "upper", "mixed")
ENDINGS = ("", "s", "ed", "ing", "ion", "er", "est", "ly", "ity", "y", "al")
SHAPES = len(CASES) * 2 * 2 * len(ENDINGS)
_LONG_ENDINGS = tuple(sorted(ENDINGS[1:], key=len, reverse=True))


def shape(word: str) -> int:
    """The class of a word, a number below `SHAPES`.

    Examples:
        >>> shape_name(shape("Bread-makers")), shape_name(shape("1990s")), shape_name(shape("("))
        ('initial-hyphen-s', 'lower-digit-s', 'none')
    """
    letters = [character for character in word if character.isalpha()]
    if not letters:
        case = 0
    elif all(character.islower() for character in letters):
        case = 1
    elif word[0].isupper() and not any(character.isupper() for character in letters[1:]):
        case = 2
    elif all(character.isupper() for character in letters):
        case = 3
    else:
        case = 4
    digit = any(character.isdigit() for character in word)
    lower = word.lower()
    ending = 0
    if case not in (0, 3) and len(word) > 3:
        found = next((e for e in _LONG_ENDINGS if lower.endswith(e)), "")
        ending = ENDINGS.index("" if lower.endswith("ss") else found)
    return ((case * 2 + digit) * 2 + ("-" in word)) * len(ENDINGS) + ending


def shape_name(number: int) -> str:
    """A class in words."""
    rest, ending = divmod(number, len(ENDINGS))
    rest, hyphen = divmod(rest, 2)
    case, digit = divmod(rest, 2)
    parts = (CASES[case], "digit" * digit, "hyphen" * hyphen, ENDINGS[ending])
    return "-".join(part for part in parts if part)
