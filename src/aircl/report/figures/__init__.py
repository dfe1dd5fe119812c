"""Figures, drawn on axes that the caller may bring."""

from aircl.report.figures.bars import plot_cost, plot_groups
from aircl.report.figures.classes import plot_class_loss, plot_confusion, plot_weight_norms
from aircl.report.figures.curves import plot_anytime, plot_class_phases_accuracy, plot_phase_accuracy
from aircl.report.figures.gamma_path import plot_gamma_path
from aircl.report.figures.pareto import plot_critical_difference, plot_pareto
from aircl.report.figures.stream import plot_stream

__all__ = [
    "plot_anytime",
    "plot_class_loss",
    "plot_class_phases_accuracy",
    "plot_confusion",
    "plot_cost",
    "plot_critical_difference",
    "plot_gamma_path",
    "plot_groups",
    "plot_pareto",
    "plot_phase_accuracy",
    "plot_stream",
    "plot_weight_norms",
]
