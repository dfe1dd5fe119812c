"""What requests and answers say, as the page of the API shows it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictInt, StrictStr

Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
Share = Annotated[Number, Field(ge=0, le=1)]
Label = StrictBool | StrictInt | Annotated[StrictStr, Field(max_length=1000)]
Features = Annotated[
    list[list[Number]] | list[Number], Field(union_mode="left_to_right", description="One row of features, or many.")
]
Texts = Annotated[
    list[StrictStr] | StrictStr,
    Field(description="One text or many instead of features, if the model has a backbone for texts."),
]
Images = Annotated[
    list[StrictStr] | StrictStr,
    Field(description="One file or many as base64 instead of features, if the model has a backbone for images."),
]
Id = StrictInt | Annotated[StrictStr, Field(max_length=1000)]
Ids = Annotated[list[Id], Field(description="What the rows are known by, if the model keeps a ledger.")]


class _Request(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Rows(_Request):
    """Rows, of the one kind that the model takes."""

    features: Features | None = None
    texts: Texts | None = None
    images: Images | None = None


class Predict(Rows):
    """Rows to predict."""

    top: Annotated[int, Field(strict=True, ge=1, le=100_000, description="How many classes per row, best first.")] = 1
    confidence: Annotated[
        Share, Field(description="The least probability of an answer: below it, the label is null, `doubtful`.")
    ] = 0.0
    novelty: Annotated[
        Share | None,
        Field(description="Tell novelty; below this share, the label is null, `unknown`. 0: only tell."),
    ] = None
    again: Annotated[
        bool, Field(description="These rows were predicted before: they do not count for the share of novel ones.")
    ] = False


class Labelled(Rows):
    """Rows with one label each."""

    labels: list[Label]
    sample_weight: list[Number] | None = None
    ids: Ids | None = None


class Learn(Labelled):
    """Rows to learn, with one label each."""

    on_duplicate: Annotated[
        Literal["error", "skip"], Field(description="What becomes of rows that the ledger has.")
    ] = "error"


class Corrected(Rows):
    """Rows as they should have been, by their ids; without features, texts or images they stay what they were."""

    labels: list[Label]
    sample_weight: list[Number] | None = None
    ids: Ids


class Correct(_Request):
    """Rows as they were learned, and as they should have been; both by the same ids, and in one change.

    A service that keeps rows knows the old ones by the ids of the new ones.
    """

    old: Labelled | None = None
    new: Corrected


class Forget(Rows):
    """Rows to forget, as they were learned, or whole classes; ids alone are enough for a service that keeps rows."""

    labels: list[Label] | None = None
    sample_weight: list[Number] | None = None
    ids: Ids | None = None
    classes: list[Label] | None = None
    purge: Annotated[bool, Field(description="Remove older versions too: they hold what is forgotten.")] = False


class Rollback(_Request):
    """The version to go back to."""

    version: Annotated[int, Field(strict=True, ge=0)]


class Undo(_Request):
    """The number of the change to take back, which has to be the last one."""

    version: Annotated[int, Field(strict=True, ge=1)]


class Probability(BaseModel):
    """A class and how likely it is."""

    label: Any
    probability: float


class Prediction(Probability):
    """The best class of a row, and the next ones if more were asked for. No label, and why, if there is no answer."""

    top: list[Probability] | None = None
    novelty: Annotated[float | None, Field(description="The share of new rows that would be as unlike.")] = None
    reason: Literal["doubtful", "unknown"] | None = None


class Predicted(BaseModel):
    """Predictions, the version they are of, and the rows changed since. Novelty may be of an older version."""

    version: int
    rows_behind: int
    predictions: list[Prediction]
    novelty_version: int | None = None


class Changed(BaseModel):
    """A change that was made and is durable.

    `version`: predictions of this version or a later one know of it. `rows`: how many were learned, forgotten or
    corrected; of whole classes, a merge or a rollback, by how many the classes changed (sums of sample weights).
    """

    version: int
    rows: int
    repeated: bool = False


class Class(BaseModel):
    """A class, and the rows learned of it (a sum of sample weights)."""

    label: Any
    rows: float


class Classes(BaseModel):
    """The classes that were learned."""

    classes: list[Class]


class Confusion(BaseModel):
    """The share of a class that is taken for another."""

    label: Any
    share: float


class ClassAccuracy(BaseModel):
    """What to expect of a class, and what it is taken for most often."""

    label: Any
    expected: float | None
    confusions: list[Confusion]


class Drift(BaseModel):
    """Whether rows are still like those that were learned.

    `expected`: accuracy to expect of new rows, of a calibrated model. `progressive`: the share of the last 1000 rows
    that were predicted rightly just before they were learned. `novel`: the share of novel ones among the last 1000 rows
    that were looked at while they were predicted; of rows like those learned, it would be `novel_usual`.
    """

    expected: float | None
    progressive: float | None
    progressive_rows: int
    shortfall: Annotated[float | None, Field(description="Expected minus progressive accuracy.")]
    novel: float | None
    novel_rows: int
    novel_usual: float


class Accuracy(BaseModel):
    """Expected accuracy, in all and by class, of a calibrated model; and progressive accuracy."""

    version: int | None
    expected: float | None
    progressive: float | None
    progressive_rows: int
    per_class: list[ClassAccuracy]


class Version(BaseModel):
    """A checkpoint: when it was made and why, what is in it, and the rows that were changed since the one before."""

    version: int
    made: str
    reason: str
    rows: float
    classes: int
    changed: Annotated[dict[str, int], Field(description="Rows by what was done with them, such as learn or forget.")]


class Versions(BaseModel):
    """The versions that can be rolled back to, the current one last."""

    versions: list[Version]


class Loss(BaseModel):
    """A class whose rows would be others."""

    label: Any
    now: float
    then: float


class Losses(BaseModel):
    """What rolling back to a version would change."""

    version: int
    made: str
    current: int
    rows_now: float
    rows_then: float
    classes: list[Loss]
