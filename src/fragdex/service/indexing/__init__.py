"""Reading the structure of stored files where a hostile one hurts only its sender.

isolated  a process of its own for what is large: bounded, tenants in turns; exact indexes
child     what runs there: opens the file, by itself or by asking the parent
"""
