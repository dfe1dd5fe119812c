"""Figures and tables of what was learned and measured."""

from aircl.report.experiments import Experiment
from aircl.report.figures import (
    plot_anytime,
    plot_class_loss,
    plot_class_phases_accuracy,
    plot_confusion,
    plot_cost,
    plot_critical_difference,
    plot_gamma_path,
    plot_groups,
    plot_pareto,
    plot_phase_accuracy,
    plot_stream,
    plot_weight_norms,
)
from aircl.report.formats import to_csv, to_latex, to_markdown
from aircl.report.page import write_report
from aircl.report.reading import read_experiments
from aircl.report.significance import contrast, rank_methods
from aircl.report.tables import compare

__all__ = [
    "Experiment",
    "compare",
    "contrast",
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
    "rank_methods",
    "read_experiments",
    "to_csv",
    "to_latex",
    "to_markdown",
    "write_report",
]
