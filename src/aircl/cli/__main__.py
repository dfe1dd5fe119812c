"""`python -m aircl.cli` is `aircl`."""

from aircl.cli import main

main()
