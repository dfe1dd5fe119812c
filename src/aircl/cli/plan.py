"""What `aircl run --dry-run` prints."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aircl.cli.console import print_json, print_rich, say
from aircl.cli.info import size_of

if TYPE_CHECKING:
    from aircl.benchmark.plan import Plan


def show_plan(plan: Plan, json: bool) -> None:
    """Print jobs, sizes and an estimate of the time on this machine."""
    seconds = [plan.seconds(task) for task in plan.tasks]
    if json:
        print_json(
            {
                "tasks": [{**vars(task), "seconds": s} for task, s in zip(plan.tasks, seconds, strict=True)],
                "jobs": sum(task.jobs for task in plan.tasks if task.what != "features"),
                "seconds": sum(seconds),
                "network_flops_per_second": plan.network_speed,
                "other_flops_per_second": plan.other_speed,
                "remarks": list(plan.remarks),
            }
        )
        return
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("dataset", "backbone", "stream", "what"):
        table.add_column(name)
    for name in ("jobs", "samples", "TFLOP", "on disk", "time"):
        table.add_column(name, justify="right")
    for task, s in zip(plan.tasks, seconds, strict=True):
        flops = (task.network_flops + task.other_flops) / 1e12
        size = size_of(task.nbytes) if task.nbytes else ""
        names = (Text(name) for name in (task.dataset, task.backbone, task.stream, task.what))
        table.add_row(*names, str(task.jobs), f"{task.samples:,}", f"{flops:,.1f}", size, as_time(s))
    print_rich(table)
    jobs = sum(task.jobs for task in plan.tasks if task.what != "features")
    say(
        f"{jobs} jobs, about {as_time(sum(seconds))} at {plan.network_speed / 1e9:,.0f} GFLOP/s in the backbone and "
        f"{plan.other_speed / 1e9:,.0f} GFLOP/s in matrix products, as measured now. Nothing was run."
    )
    for remark in plan.remarks:
        say(remark)


def as_time(seconds: float) -> str:
    """Return a time in the unit that suits it.

    >>> as_time(0.2), as_time(99), as_time(5400), as_time(1e6)
    ('< 1 s', '99 s', '1.5 h', '278 h')
    """
    if seconds < 1:
        return "< 1 s"
    if seconds < 120:
        return f"{seconds:.0f} s"
    if seconds < 3600:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 36000 else f"{seconds / 3600:.0f} h"
