"""`python -m remora_server`: the same as `remora serve`."""

import sys

from remora_server.main import main

if __name__ == "__main__":
    sys.exit(main(["serve", *sys.argv[1:]]))
