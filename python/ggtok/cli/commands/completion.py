"""The command `ggtok completion`: the script that makes a shell complete ggtok's commands, options and files."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class


@click.command(short_help="Print a script for shell completion.")
@click.argument("shell", type=click.Choice(("bash", "zsh", "fish")))
@click.pass_context
def command(context: click.Context, shell: str) -> None:
    """Print the script that makes a shell complete commands, options, files and models. Put it where the shell
    looks for such scripts, and start a new shell:

    \b
    ggtok completion bash > ~/.local/share/bash-completion/completions/ggtok
    ggtok completion zsh > ~/.zfunc/_ggtok      # with fpath+=~/.zfunc before compinit in ~/.zshrc
    ggtok completion fish > ~/.config/fish/completions/ggtok.fish
    """
    kind = get_completion_class(shell)
    assert kind is not None
    script = kind(context.find_root().command, {}, "ggtok", "_GGTOK_COMPLETE")
    print(script.source_template % script.source_vars(), end="")
