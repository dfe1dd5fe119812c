"""Figures and tables of what was learned and measured."""

from aircl.report.figures import plot_gamma_path

__all__ = ["plot_gamma_path"]
