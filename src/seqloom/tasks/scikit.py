"""What scikit-learn asks of an estimator besides settings; it is never imported unless it asks."""

from __future__ import annotations

import sys
import warnings
from typing import Any, Literal

from seqloom.errors import NotFittedError


def not_fitted_error() -> type[NotFittedError]:
    """Return `NotFittedError`; where scikit-learn is loaded, one that is its own as well."""
    exceptions = sys.modules.get("sklearn.exceptions")
    if exceptions is None:
        return NotFittedError
    return type("NotFittedError", (NotFittedError, exceptions.NotFittedError), {})


def warn_of_column() -> None:
    """Warn that labels came as a column, with scikit-learn's own class where it is loaded."""
    exceptions = sys.modules.get("sklearn.exceptions")
    category = UserWarning if exceptions is None else exceptions.DataConversionWarning
    message = (
        "A column-vector y was passed when a 1d array was expected. Change the shape of y to "
        "(n_samples,), for example using y.ravel()."
    )
    warnings.warn(message, category, stacklevel=4)


def estimator_tags(
    kind: Literal["classifier", "regressor"] | None,
    *,
    strings: bool = False,
    multi_output: bool = False,
    positive_targets: bool = False,
) -> Any:
    """Return the tags by which scikit-learn knows what an estimator takes and gives.

    Args:
        kind: What it is; None for what predicts a list an example.
        strings: Whether it takes lists of strings too.
        multi_output: Whether it predicts several numbers at once.
        positive_targets: Whether it predicts only numbers that are not negative.
    """
    from sklearn.utils import ClassifierTags, InputTags, RegressorTags, Tags, TargetTags

    return Tags(
        estimator_type=kind,
        target_tags=TargetTags(
            required=True, multi_output=multi_output, positive_only=positive_targets
        ),
        classifier_tags=ClassifierTags() if kind == "classifier" else None,
        regressor_tags=RegressorTags() if kind == "regressor" else None,
        input_tags=InputTags(string=strings),
    )
