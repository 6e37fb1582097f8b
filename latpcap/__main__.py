"""Run the command line as `python -m latpcap`."""

from latpcap.cli import main

if __name__ == "__main__":
    main()
