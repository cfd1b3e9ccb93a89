"""The entry point of the program, also as `python -m clawtrace`."""

import signal

__all__ = ["main"]


def main() -> None:
    """Load the program and run it; Ctrl-C ends it without a word while it is still being loaded."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # `cli` takes it back as soon as it can say what happened
    from clawtrace.cli.main import main as run

    run()


if __name__ == "__main__":
    main()
