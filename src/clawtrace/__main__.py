"""`python -m clawtrace`: the command line, where the script is not on the path."""

from clawtrace.cli.main import main

if __name__ == "__main__":
    main()
