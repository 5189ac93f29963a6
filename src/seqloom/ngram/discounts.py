"""The numbers of a smoothing at one order: its rule, and discounts from counts of counts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from seqloom.errors import ConfigError

FALLBACK = (0.5, 1.0, 1.5)  # the discounts of an order whose own are undefined, as in lmplz


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What a smoothing may ask about the n-grams of one order.

    Args:
        order: Their length.
        counted: `counted[r]` is how many of them have the count r.
        kind: What the counts are called.
        vocabulary: How many words there are without `<s>`, the V of the equations.
        weight: The weight of this order in a mixture, if it is one.
    """

    order: int
    counted: Sequence[int]
    kind: str
    vocabulary: int
    weight: float = 1.0


@dataclass(frozen=True, kw_only=True)
class Rule:
    """The numbers of the equation in `methods.py` for one order.

    Args:
        discounts: D by count, from count 0 on; the last one holds for all higher counts.
        per_type: What each seen word adds to the denominator.
        constant: What a seen history adds to its denominator.
        scale: The share of this order in a mixture.
        spare: What a seen history adds to its denominator if nothing is left of it otherwise.
        undefined: Why these discounts are the fallback, if they are.
    """

    discounts: tuple[float, ...] = (0.0,)
    per_type: float = 0.0
    constant: float = 0.0
    scale: float = 1.0
    spare: float = 0.0
    undefined: str = ""


class _UndefinedError(Exception):
    """The counts of an order do not determine its discounts; the message says why."""


def discounting(
    estimate: Callable[[Facts], tuple[float, ...]],
    given: Sequence[float | Sequence[float] | None],
    fallback: Sequence[float],
    *,
    parts: int,
    strict: bool = False,
    spare: float = 0.0,
) -> Callable[[Facts], Rule]:
    """The rule of a smoothing with discounts: those given, else estimated, else the fallback.

    In a back-off model (`strict`) a discount must leave something to a seen n-gram.
    """
    tables = [
        None if each is None else _checked(f"discounts of order {order}", each, parts, strict)
        for order, each in enumerate(given, 1)
    ]
    instead = _checked("fallback", fallback[:parts], parts, strict)

    def rule(facts: Facts) -> Rule:
        table = tables[facts.order - 1] if facts.order <= len(tables) else None
        if table is not None:
            return Rule(discounts=table)
        try:
            table = estimate(facts)
            for count, discount in enumerate(table):
                if not 0 <= discount <= count or (strict and discount == count > 0):
                    raise _UndefinedError(
                        f"the discount of {facts.order}-grams with the {facts.kind} {count} "
                        f"would be {discount:.4g}"
                    )
        except _UndefinedError as why:
            return Rule(discounts=instead, undefined=str(why), spare=spare)
        return Rule(discounts=table, spare=spare)

    return rule


def _checked(
    what: str, given: float | Sequence[float], parts: int, strict: bool
) -> tuple[float, ...]:
    table = (0.0, *map(float, given if isinstance(given, Sequence) else (given,)))
    fits = all(0 <= d <= j and (not strict or d < j) for j, d in enumerate(table[1:], 1))
    if len(table) != parts + 1 or not fits:
        form = "one number" if parts == 1 else f"{parts} numbers"
        below = "below" if strict else "at most"
        raise ConfigError(
            f"{what} must be {form}, that of count j at least 0 and {below} j, "
            f"got {given if not isinstance(given, Sequence) else tuple(given)}; "
            f"{FALLBACK[:parts]} is usual"
        )
    return table


def _seen(facts: Facts, *counts: int) -> None:
    """Refuse where no n-gram has one of these counts."""
    for count in counts:
        if facts.counted[count] == 0:
            raise _UndefinedError(f"no {facts.order}-gram has the {facts.kind} {count}")


def one_discount(facts: Facts) -> tuple[float, ...]:
    """The discount of `absolute_discounting` and `kneser_ney`."""
    n = facts.counted
    _seen(facts, 1, 2)
    return 0.0, n[1] / (n[1] + 2 * n[2])


def three_discounts(facts: Facts) -> tuple[float, ...]:
    """The discounts of `modified_kneser_ney`.

    In single precision, as lmplz has them: whether one is just in range is then the same too.
    """
    n = [np.float32(count) for count in facts.counted]
    _seen(facts, 1, 2, 3)
    y = n[1] / np.float32(facts.counted[1] + 2.0 * facts.counted[2])
    amounts = (np.float32(j) - np.float32(j + 1) * y * n[j + 1] / n[j] for j in (1, 2, 3))
    return 0.0, *map(float, amounts)


def katz(facts: Facts, cutoff: int) -> tuple[float, ...]:
    """The discounts of `good_turing`."""
    n = facts.counted
    _seen(facts, 1)
    kept = (cutoff + 1) * n[cutoff + 1] / n[1]
    if kept >= 1:
        raise _UndefinedError(
            f"the {facts.order}-grams with the count {cutoff + 1} "
            "take no smaller part of the text than those with the count 1"
        )
    table = [0.0]
    for r in range(1, cutoff + 1):
        ratio = ((r + 1) * n[r + 1] / n[r] / r - kept) / (1 - kept) if n[r] else 1.0
        table.append(r - ratio * r)
    return *table, 0.0
