"""The commands of ``gatelight``, one file for each family. What is heavy is imported when a command runs."""
