"""Resumable uploads for HTTP by the draft of the IETF, over the same uploads as those of tus."""
