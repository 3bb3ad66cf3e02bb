"""The command line ``corevault``. Results go to standard output, progress and errors to standard error."""
