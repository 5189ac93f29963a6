r"""The methods of smoothing: what each takes from a seen n-gram, and who gets it.

At one order every smoothing here is one rule. With $c$ the count of an n-gram $h w$, all sums over
the words seen after $h$ and $N_1$ the number of these words,

$$\alpha(w | h) = \mathrm{scale} \frac{c(h w) - D_{c(h w)}}
{\sum c(h v) + \mathrm{per\_type} \cdot N_1(h) + \mathrm{constant}}$$

and $\gamma(h) = 1 - \sum \alpha(v | h)$ goes to the shorter history $h'$: in an interpolated model
$p(w | h) = \alpha(w | h) + \gamma(h) p(w | h')$, in a back-off model $p(w | h) = \alpha(w | h)$
for words seen after $h$ and $\gamma(h)$ is shared among the others as $p(\cdot | h')$ has it.
Below order 1 lies the uniform distribution over the words. `smoothing.py` does the sums.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from seqloom.errors import ConfigError, one_of
from seqloom.ngram.discounts import (
    FALLBACK,
    Facts,
    Rule,
    discounting,
    katz,
    one_discount,
    three_discounts,
)

# From order 1 on; None, and orders beyond, are estimated.
Discounts = Sequence[float | Sequence[float] | None]

HIGHEST_DELTA = 1e100  # that many times a vocabulary is still a finite number
HIGHEST_CUTOFF = (1 << 16) - 1  # each count up to it has a discount in memory


@dataclass(frozen=True, kw_only=True)
class Smoothing:
    """A way to turn counts into probabilities; the functions below make them.

    Args:
        name: Its name in `SMOOTHINGS`.
        rule: What it does at one order.
        continuation: Whether orders below the highest count the distinct words before an n-gram
            in place of its occurrences, but for n-grams that begin with `<s>`.
        interpolated: Whether seen n-grams get a share of the shorter history too.
        uniform: Whether what is left goes to the uniform distribution, not to shorter histories.
        interpolate_unigrams: Whether what is left at order 1 goes to all words; else to `<unk>`.
        highest_count: The highest count r for which the rule asks how many n-grams have it.
        backoff: A back-off weight for every history, which makes the model no distribution.
        mixture: Whether the orders have weights.
        weights: These, from order 1 on; found on held-out text if not given.
        discounted: For how many orders discounts were given.
    """

    name: str
    rule: Callable[[Facts], Rule]
    continuation: bool = False
    interpolated: bool = True
    uniform: bool = False
    interpolate_unigrams: bool = True
    highest_count: int = 4
    backoff: float | None = None
    mixture: bool = False
    weights: tuple[float, ...] | None = None
    discounted: int = 0


def maximum_likelihood() -> Smoothing:
    r"""Relative frequencies: what was not seen after a seen history has probability 0.

    $$p(w | h) = c(h w) / \sum_v c(h v)$$

    After a history that was not seen itself it is that of the shorter one.
    """
    return Smoothing(name="maximum-likelihood", rule=lambda _: Rule(), interpolated=False)


def add_one() -> Smoothing:
    r"""Every word seen once more than it was; `add_delta` with 1.

    Paper: Laplace (1814), "Essai philosophique sur les probabilités" (the rule of succession).
    """
    return Smoothing(name="add-one", rule=_adding(1.0), uniform=True)


def add_delta(*, delta: float = 0.1) -> Smoothing:
    r"""Every word seen `delta` times more than it was, after the longest history there is.

    $$p(w | h) = \frac{c(h w) + \delta}{\sum_v c(h v) + \delta V}
    = \frac{c(h w)}{\sum_v c(h v) + \delta V} + \gamma(h) \frac{1}{V}$$

    for histories of order - 1 words and shorter ones that begin with `<s>`; 1 / V after a history
    that was not seen.

    Paper: Lidstone (1920), "Note on the General Case of the Bayes-Laplace Formula".
    """
    if not 0 < delta <= HIGHEST_DELTA:
        raise ConfigError(
            f"delta must be greater than 0 and at most {HIGHEST_DELTA:g}, got {delta}; for no "
            "smoothing use maximum-likelihood"
        )
    return Smoothing(name="add-delta", rule=_adding(delta), uniform=True)


def _adding(delta: float) -> Callable[[Facts], Rule]:
    return lambda facts: Rule(constant=delta * facts.vocabulary)


def good_turing(*, cutoff: int = 5, fallback: Sequence[float] = FALLBACK) -> Smoothing:
    r"""Katz back-off: counts up to the cutoff k are multiplied by a Good-Turing ratio.

    $$r^* = (r + 1) \frac{n_{r+1}}{n_r}, \quad
    d_r = \frac{r^*/r - (k + 1) n_{k+1} / n_1}{1 - (k + 1) n_{k+1} / n_1}, \quad D_r = r - d_r r$$

    where $n_r$ is how many n-grams of the order have the count r.

    Paper: Katz (1987), "Estimation of Probabilities from Sparse Data for the Language Model
    Component of a Speech Recognizer", equations 1 to 13.
    Differs from the paper: after a history whose counts are all above the cutoff nothing would be
    left for other words, so its denominator is one higher, as in SRILM and the CMU toolkit.
    """
    if not isinstance(cutoff, int) or not 1 <= cutoff <= HIGHEST_CUTOFF:
        raise ConfigError(
            f"cutoff must be at least 1 and at most {HIGHEST_CUTOFF:,}, a whole number, got "
            f"{cutoff}; 5 is usual"
        )
    rule = discounting(
        lambda facts: katz(facts, cutoff), (), fallback, parts=3, strict=True, spare=1.0
    )
    return Smoothing(name="good-turing", rule=rule, interpolated=False, highest_count=cutoff + 1)


def absolutediscounting(
    *,
    discounts: Discounts = (),
    fallback: Sequence[float] = FALLBACK,
    interpolate_unigrams: bool = True,
) -> Smoothing:
    r"""One discount for all counts of an order, interpolated.

    $$\alpha(w | h) = \frac{c(h w) - D}{\sum_v c(h v)}, \quad D = \frac{n_1}{n_1 + 2 n_2}$$

    Paper: Ney, Essen and Kneser (1994), "On Structuring Probabilistic Dependences in Stochastic
    Language Modelling".
    """
    return Smoothing(
        name="absolute-discounting",
        rule=discounting(one_discount, discounts, fallback, parts=1),
        interpolate_unigrams=interpolate_unigrams,
        discounted=len(discounts),
    )


def absolutediscounting_backoff(
    *,
    discounts: Discounts = (),
    fallback: Sequence[float] = FALLBACK,
) -> Smoothing:
    """The discount of `absolutediscounting` in a back-off model."""
    return Smoothing(
        name="absolute-discounting-backoff",
        rule=discounting(one_discount, discounts, fallback, parts=1, strict=True),
        interpolated=False,
        discounted=len(discounts),
    )


def witten_bell(*, interpolate_unigrams: bool = True) -> Smoothing:
    r"""A history gives to the shorter one by how many different words followed it, interpolated.

    $$\alpha(w | h) = \frac{c(h w)}{\sum_v c(h v) + N_1(h)}, \quad
    \gamma(h) = \frac{N_1(h)}{\sum_v c(h v) + N_1(h)}$$

    Paper: Witten and Bell (1991), "The Zero-Frequency Problem", method C, as Chen and Goodman
    (1998), "An Empirical Study of Smoothing Techniques for Language Modeling", equation 17.
    """
    return Smoothing(
        name="witten-bell",
        rule=lambda _: Rule(per_type=1.0),
        interpolate_unigrams=interpolate_unigrams,
    )


def jelinek_mercer(*, weights: Sequence[float] | None = None) -> Smoothing:
    r"""A mixture of the relative frequencies of all orders, a weight an order.

    $$p_o(w | h) = \lambda_o \frac{c(h w)}{\sum_v c(h v)} + (1 - \lambda_o) p_{o-1}(w | h')$$

    down to the uniform distribution; an order whose history was not seen is skipped. The weights
    are those given, from order 1 on, or those that make held-out text most probable.

    Paper: Jelinek and Mercer (1980), "Interpolated Estimation of Markov Source Parameters from
    Sparse Data".
    Differs from the paper: one weight an order, not one a bucket of histories.
    """
    if weights is not None and not all(0 <= weight <= 1 for weight in weights):
        raise ConfigError(f"weights must lie in [0, 1], got {[*weights]}; give one an order")
    return Smoothing(
        name="jelinek-mercer",
        rule=lambda facts: Rule(scale=facts.weight),
        mixture=True,
        weights=None if weights is None else tuple(map(float, weights)),
    )


def kneser_ney(
    *,
    discounts: Discounts = (),
    fallback: Sequence[float] = FALLBACK,
    interpolate_unigrams: bool = True,
) -> Smoothing:
    r"""`absolutediscounting` where shorter n-grams count the different words before them.

    $$c'(g) = |\{v : c(v g) > 0\}|$$

    below the highest order, for n-grams g that do not begin with `<s>`.

    Paper: Kneser and Ney (1995), "Improved Backing-off for M-gram Language Modeling"; interpolated
    as in Chen and Goodman (1998), section 4.1.6.
    """
    return Smoothing(
        name="kneser-ney",
        rule=discounting(one_discount, discounts, fallback, parts=1),
        continuation=True,
        interpolate_unigrams=interpolate_unigrams,
        discounted=len(discounts),
    )


def kneser_ney_backoff(
    *,
    discounts: Discounts = (),
    fallback: Sequence[float] = FALLBACK,
) -> Smoothing:
    """The counts and the discount of `kneser_ney` in a back-off model, as its paper has it."""
    return Smoothing(
        name="kneser-ney-backoff",
        rule=discounting(one_discount, discounts, fallback, parts=1, strict=True),
        continuation=True,
        interpolated=False,
        discounted=len(discounts),
    )


def modified_kneser_ney(
    *,
    discounts: Discounts = (),
    fallback: Sequence[float] = FALLBACK,
    interpolate_unigrams: bool = True,
) -> Smoothing:
    r"""`kneser_ney` with three discounts an order: for counts of 1, of 2, and of 3 and more.

    $$Y = \frac{n_1}{n_1 + 2 n_2}, \quad D_j = j - (j + 1) Y \frac{n_{j+1}}{n_j}$$

    Paper: Chen and Goodman (1998), "An Empirical Study of Smoothing Techniques for Language
    Modeling", equation 26; the models equal those of KenLM's lmplz (Heafield et al., 2013,
    "Scalable Modified Kneser-Ney Language Model Estimation").
    """
    return Smoothing(
        name="modified-kneser-ney",
        rule=discounting(three_discounts, discounts, fallback, parts=3),
        continuation=True,
        interpolate_unigrams=interpolate_unigrams,
        discounted=len(discounts),
    )


def modified_kneser_ney_backoff(
    *,
    discounts: Discounts = (),
    fallback: Sequence[float] = FALLBACK,
) -> Smoothing:
    """The counts and the discounts of `modified_kneser_ney` in a back-off model."""
    return Smoothing(
        name="modified-kneser-ney-backoff",
        rule=discounting(three_discounts, discounts, fallback, parts=3, strict=True),
        continuation=True,
        interpolated=False,
        discounted=len(discounts),
    )


def stupid_backoff(*, backoff: float = 0.4) -> Smoothing:
    r"""Relative frequencies, and a fixed price for a shorter history: scores, no distribution.

    $$s(w | h) = c(h w) / \sum_v c(h v) \text{ if seen, else } 0.4 \, s(w | h')$$

    Paper: Brants et al. (2007), "Large Language Models in Machine Translation", equation 5.
    """
    if not 0 < backoff <= 1:
        raise ConfigError(f"backoff must lie in (0, 1], got {backoff}; 0.4 is the paper's")
    return Smoothing(
        name="stupid-backoff", rule=lambda _: Rule(), interpolated=False, backoff=backoff
    )


SMOOTHINGS: dict[str, Callable[..., Smoothing]] = {
    "maximum-likelihood": maximum_likelihood,
    "add-one": add_one,
    "add-delta": add_delta,
    "good-turing": good_turing,
    "absolute-discounting": absolutediscounting,
    "absolute-discounting-backoff": absolutediscounting_backoff,
    "witten-bell": witten_bell,
    "jelinek-mercer": jelinek_mercer,
    "kneser-ney": kneser_ney,
    "kneser-ney-backoff": kneser_ney_backoff,
    "modified-kneser-ney": modified_kneser_ney,
    "modified-kneser-ney-backoff": modified_kneser_ney_backoff,
    "stupid-backoff": stupid_backoff,
}


def smoothing(name: str, **options: object) -> Smoothing:
    """The smoothing of this name; the options are the arguments of its function above.

    Raises:
        ConfigError: There is none of this name, or it has no such option.
    """
    if name not in SMOOTHINGS:
        raise ConfigError(one_of("smoothing", name, SMOOTHINGS))
    known = inspect.signature(SMOOTHINGS[name]).parameters
    for option in options:
        if option not in known:
            raise ConfigError(one_of(f"option of {name}", option, known))
    return SMOOTHINGS[name](**options)
