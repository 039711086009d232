"""From sources to indexes, as data falls: reading, scanning, runs and tables, assembling."""
