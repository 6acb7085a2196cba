"""`python -m octavolt` is the command."""

from octavolt.cli import main

if __name__ == "__main__":
    main()
