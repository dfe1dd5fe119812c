"""Tell at how many lines exceptions were raised."""


def pytest_terminal_summary(terminalreporter):
    reports = [report for key in ("passed", "failed") for report in terminalreporter.stats.get(key, [])]
    lines = [value for report in reports for name, value in report.user_properties if name == "lines"]
    if lines:
        terminalreporter.write_line(f"raised at {sum(lines)} lines in {len(lines)} operations")
