"""The command line: one file a command; what a command needs it imports when it runs.

Data go to stdout, words about the work to stderr. Exit codes: 0; 1 a check that fails, or a fault;
2 bad usage or bad input; 130 interrupted.
"""
