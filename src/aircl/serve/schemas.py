"""What requests say, as the page of the API shows it."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictInt, StrictStr

Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
Label = StrictBool | StrictInt | Annotated[StrictStr, Field(max_length=1000)]
Rows = Annotated[
    list[list[Number]] | list[Number], Field(union_mode="left_to_right", description="One row of features, or many.")
]


class _Request(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Predict(_Request):
    """Rows to predict."""

    features: Rows
    top: Annotated[int, Field(strict=True, ge=1, le=100_000, description="How many classes per row, best first.")] = 1


class Learn(_Request):
    """Rows to learn, with one label each."""

    features: Rows
    labels: list[Label]
    sample_weight: list[Number] | None = None


class Forget(_Request):
    """Rows to forget, as they were learned, or whole classes."""

    features: Rows | None = None
    labels: list[Label] | None = None
    sample_weight: list[Number] | None = None
    classes: list[Label] | None = None
    purge: Annotated[bool, Field(description="Remove older versions too: they hold what is forgotten.")] = False


class Rollback(_Request):
    """The version to go back to."""

    version: Annotated[int, Field(strict=True, ge=0)]


class Probability(BaseModel):
    """A class and how likely it is."""

    label: Any
    probability: float


class Prediction(Probability):
    """The best class of a row, and the next ones if more were asked for."""

    top: list[Probability] | None = None


class Predicted(BaseModel):
    """Predictions, and what they were made of."""

    version: int
    rows_behind: int
    predictions: list[Prediction]


class Changed(BaseModel):
    """A change that was made and is durable. `version`: predictions of this version or a later one know of it."""

    version: int
    rows: int
    repeated: bool = False
