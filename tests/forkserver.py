"""Runs commands in processes of their own that need not import anything first: real ones, which can be killed.

Reads requests from stdin, one JSON object a line, and answers each with one: `{"args": ..}` starts a command and gives
its process id, `{"wait": id}` gives its exit code, null while it runs. `{"code": ..}` runs a Python program in
the place of a command.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import resource
import sys
import tempfile

import matplotlib.figure
import pyarrow.parquet
import scipy.linalg
import sklearn.utils.validation

import aircl.benchmark
import aircl.benchmark.runner
import aircl.cli.commands
import aircl.cli.output
import aircl.data.arrays
import aircl.report
import aircl.report.figures

with contextlib.suppress(ImportError):  # an extra
    import aircl.serve.run

PRELOADED = (matplotlib.figure, pyarrow.parquet, scipy.linalg, sklearn.utils.validation, aircl.report.figures)


def start(request):
    process = os.fork()
    if process:
        return process
    code = 99
    try:
        os.chdir(request["cwd"])
        os.environ.update(request.get("env", {}))
        tempfile.tempdir = None  # as in a process that has not asked yet
        for name, limit in request.get("limits", {}).items():
            resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (limit, limit))
        sys.stdin = open(os.devnull)  # noqa: SIM115
        for number, name in ((1, "stdout"), (2, "stderr")):
            if request[name] is None:
                os.close(number)
                setattr(sys, name, None)
            else:
                os.dup2(os.open(request[name], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666), number)
                setattr(sys, name, open(number, "w", closefd=False, encoding=request.get("encoding", "utf-8")))  # noqa: SIM115
        if "code" in request:
            sys.argv = ["-c", *request["args"]]
            exec(compile(request["code"], "-c", "exec"), {"__name__": "__main__"})
        else:
            sys.argv = ["aircl", *request["args"]]
            aircl.cli.commands.main()
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    except BaseException:
        import traceback

        traceback.print_exc()
        code = 98
    finally:
        atexit._run_exitfuncs()
        try:
            for stream in (sys.stdout, sys.stderr):
                if stream is not None:
                    stream.flush()
        except OSError:
            code = 120  # as Python itself ends if it cannot write the rest
        os._exit(code)


def ended(process):
    found, status = os.waitpid(process, os.WNOHANG)
    return os.waitstatus_to_exitcode(status) if found else None


def main():
    answers = os.fdopen(os.dup(1), "w")
    for line in sys.stdin:
        request = json.loads(line)
        print(json.dumps(ended(request["wait"]) if "wait" in request else start(request)), file=answers, flush=True)


if __name__ == "__main__":
    main()
