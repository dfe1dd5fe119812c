"""What requests say, as the page of the API shows it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictInt, StrictStr

Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
Label = StrictBool | StrictInt | Annotated[StrictStr, Field(max_length=1000)]
Features = Annotated[
    list[list[Number]] | list[Number], Field(union_mode="left_to_right", description="One row of features, or many.")
]
Texts = Annotated[list[StrictStr], Field(description="Instead of features, if the model has a backbone for them.")]
Id = StrictInt | Annotated[StrictStr, Field(max_length=1000)]
Ids = Annotated[list[Id], Field(description="What the rows are known by, if the model keeps a ledger.")]


class _Request(BaseModel):
    model_config = ConfigDict(extra="forbid")


class _Rows(_Request):
    features: Features | None = None
    texts: Texts | None = None


class Predict(_Rows):
    """Rows to predict."""

    top: Annotated[int, Field(strict=True, ge=1, le=100_000, description="How many classes per row, best first.")] = 1
    confidence: Annotated[
        Number, Field(ge=0, le=1, description="The least probability of an answer: below it, the label is null.")
    ] = 0.0


class _Labelled(_Rows):
    labels: list[Label]
    sample_weight: list[Number] | None = None
    ids: Ids | None = None


class Learn(_Labelled):
    """Rows to learn, with one label each."""

    on_duplicate: Annotated[
        Literal["error", "skip"], Field(description="What becomes of rows that the ledger has.")
    ] = "error"


class Correct(_Request):
    """Rows as they were learned, and as they should have been; both by the same ids, and in one change."""

    old: _Labelled
    new: _Labelled


class Forget(_Rows):
    """Rows to forget, as they were learned, or whole classes."""

    labels: list[Label] | None = None
    sample_weight: list[Number] | None = None
    ids: Ids | None = None
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
