"""From fragment tables to answers: the index of a file, seeks, and the reads that they need."""
