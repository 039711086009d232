"""The index in everyone's form, a file each.

Every form has a `write(index, **options) -> bytes`, and a `read` where it can be read.
"""
