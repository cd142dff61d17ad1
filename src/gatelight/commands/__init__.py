"""The commands of ``gatelight``, one file for each family. Slow imports wait until a command runs."""
