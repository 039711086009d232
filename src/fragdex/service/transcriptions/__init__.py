"""Transcriptions of stored files, by `fragdex.speech`."""
