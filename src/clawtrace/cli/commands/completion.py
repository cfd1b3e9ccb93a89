"""`clawtrace completion SHELL`: the script that makes a shell complete the program's commands."""

from __future__ import annotations

import click

from clawtrace.cli.main import cli

__all__ = ["command"]

_PROGRAM = "clawtrace"


@click.command(epilog="Example: echo 'eval \"$(clawtrace completion bash)\"' >> ~/.bashrc")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> None:
    """Print a script that completes commands, options, and the names of suites, cases and assertion types.

    bash: eval "$(clawtrace completion bash)" in ~/.bashrc (bash 4.4 or newer). zsh: eval "$(clawtrace completion zsh)" in
    ~/.zshrc, after compinit. fish: clawtrace completion fish > ~/.config/fish/completions/clawtrace.fish
    """
    from click.shell_completion import get_completion_class

    found = get_completion_class(shell)
    assert found is not None
    click.echo(found(cli, {}, _PROGRAM, f"_{_PROGRAM.upper()}_COMPLETE").source())
