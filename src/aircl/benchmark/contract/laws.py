"""The laws that every method of the benchmark keeps, by what they say."""

from __future__ import annotations

from aircl.benchmark.contract.exam import Law
from aircl.benchmark.contract.keeping import keeps_what_it_says, leaves_inputs_alone, saves_no_more_for_more
from aircl.benchmark.contract.learning import (
    learns,
    learns_newest,
    learns_one_sample,
    learns_online,
    survives_emptiness,
    takes_any_batch,
    takes_labels_with_gaps,
)
from aircl.benchmark.contract.places import gives_no_place
from aircl.benchmark.contract.predicting import (
    encodes_alike,
    judges_rows_alone,
    knows_no_test_label,
    predicting_is_pure,
    predicts_exposed,
    takes_names_for_names,
)
from aircl.benchmark.contract.repeating import (
    is_deterministic,
    resumes_between_phases,
    resumes_elsewhere,
    resumes_within_phase,
    saves_the_same,
)

LAWS: dict[str, Law] = {
    "learns its training data": learns,
    "learns the newest classes of a stream": learns_newest,
    "learns online, also when classes come back": learns_online,
    "predicts only exposed classes": predicts_exposed,
    "does not know test labels": knows_no_test_label,
    "treats labels as names, not as numbers": takes_names_for_names,
    "predicts each row independently of others": judges_rows_alone,
    "encodes the same before and after learning": encodes_alike,
    "predicting changes nothing": predicting_is_pure,
    "does not change its inputs": leaves_inputs_alone,
    "accepts empty phases and empty batches": survives_emptiness,
    "learns classes of a single sample": learns_one_sample,
    "takes batches of any size": takes_any_batch,
    "takes new classes at any time, and labels with gaps": takes_labels_with_gaps,
    "gives the same result for the same seed": is_deterministic,
    "saves the same state for the same seed": saves_the_same,
    "continues identically after a stop between phases": resumes_between_phases,
    "continues identically after a stop within a phase": resumes_within_phase,
    "continues identically in another process": resumes_elsewhere,
    "keeps no more samples than it says": keeps_what_it_says,
    "saves no more after more samples": saves_no_more_for_more,
    "stores equal rows in the same places": gives_no_place,
}
