"""What there is to see: classes, versions, accuracy, drift, health, metrics."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
from fastapi import APIRouter, Response

from aircl.serve import schemas
from aircl.serve.errors import RefusedError
from aircl.serve.losses import losses
from aircl.serve.metrics import Metrics
from aircl.serve.service import Service

# Classes that a class is taken for, the most frequent first.
CONFUSIONS = 5


def watching(service: Service, metrics: Metrics) -> APIRouter:
    """Return the routes that only tell."""
    router = APIRouter()

    @router.get("/classes", response_model=schemas.Classes)
    async def classes() -> dict[str, Any]:
        """List the classes, with the rows learned of each (sums of sample weights)."""
        return {"classes": [{"label": label, "rows": count} for label, count in service.class_rows()]}

    @router.get("/expected-accuracy", response_model=schemas.Accuracy)
    async def expected_accuracy() -> dict[str, Any]:
        """Tell the accuracy to expect of new rows, in all and by class, and what classes are taken for."""
        solved, figures = service.solved, service.drift.figures()
        kept = ("expected", "progressive", "progressive_rows")
        told = {"version": None if solved is None else solved.moment.version} | {name: figures[name] for name in kept}
        if solved is None or solved.expected is None:
            return told | {"per_class": []}
        confusions: dict[Any, list[Any]] = {label: [] for label in solved.classes}
        for label, other, share in solved.expected.confusions:
            if len(confusions[label]) < CONFUSIONS:
                confusions[label].append({"label": other, "share": share})
        expected = [value if np.isfinite(value) else None for value in solved.expected.per_class.tolist()]
        pairs = zip(solved.classes, expected, strict=True)
        return told | {
            "per_class": [{"label": label, "expected": e, "confusions": confusions[label]} for label, e in pairs]
        }

    @router.get("/drift", response_model=schemas.Drift)
    async def drift() -> dict[str, Any]:
        """Tell whether rows are still like those that were learned."""
        return service.drift.figures()

    @router.get("/versions", response_model=schemas.Versions)
    async def versions() -> dict[str, Any]:
        """List the versions that can be rolled back to, the current one last."""
        return {"versions": [vars(version) for version in service.catalogue.versions]}

    @router.get("/versions/{number}", response_model=schemas.Losses)
    async def version(number: int) -> dict[str, Any]:
        """Tell what rolling back to a version would lose."""
        try:
            return await asyncio.to_thread(losses, service, number)
        except LookupError as error:
            raise RefusedError(str(error), 404) from error

    @router.get("/healthz")
    async def healthz() -> dict[str, Any]:
        """Tell how it is. `degraded`: predictions go on, and `problem` says what does not."""
        return service.status()

    @router.get("/metrics", response_class=Response)
    async def show_metrics() -> Response:
        """Return what Prometheus collects."""
        return Response(metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")

    return router
