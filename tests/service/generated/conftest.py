"""The walks are programs that run beside the clients that are written for them."""

collect_ignore = ["walk.py"]
