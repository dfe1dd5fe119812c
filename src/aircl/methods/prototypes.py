"""Classifiers by class means, on the backbone's features: NCM, SLDA, FeCAM."""

from __future__ import annotations

from aircl.classifiers.fecam import FeCAMClassifier
from aircl.classifiers.ncm import NCMClassifier
from aircl.classifiers.slda import SLDAClassifier
from aircl.methods.classifier import ClassifierMethod
from aircl.methods.registry import register_method


@register_method("ncm")
class Ncm(ClassifierMethod):
    """NCM, or SimpleCIL: the class whose mean has the largest cosine with the features."""

    estimator = NCMClassifier


@register_method("slda")
class Slda(ClassifierMethod):
    """SLDA: linear discriminant analysis with one covariance for all classes."""

    estimator, options = SLDAClassifier, ("shrinkage",)


@register_method("fecam")
class FeCam(ClassifierMethod):
    """FeCAM: the nearest class mean under every class's own covariance."""

    estimator, options = FeCAMClassifier, ("shrinkage", "rounds", "normalize", "power", "memory_limit")
