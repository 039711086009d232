"""Reading the structure of stored files where a hostile one hurts only its sender.

apart    a process of its own for what is large: bounded, tenants in turns
child    what runs there: opens the file, by itself or by asking the parent
exact    the exact index of a stored file, there or in a thread
"""
