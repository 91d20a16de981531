"""`python -m greenroom`: the `greenroom` command, for where its script is not on the path."""

from greenroom.cli import main

if __name__ == "__main__":
    main()
