"""Commands that refuse what would be lost: an option that is given twice, of which only the last would count."""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperCommand, TyperOption


class OnceCommand(TyperCommand):
    """A command whose options are given once, unless they may be repeated."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Count options before they are parsed."""
        given = [arg.partition("=")[0] for arg in args[: args.index("--") if "--" in args else None]]
        for option in self.params:
            if isinstance(option, TyperOption) and not option.multiple and not option.is_flag:
                names = [name for name in option.opts if name.startswith("--")]
                if sum(arg in names for arg in given) > 1:
                    message = "it is given twice, and only the last one would count."
                    raise typer.BadParameter(message, ctx, param_hint=f"'{names[0]}'")  # versions word their own
        return super().parse_args(ctx, args)
