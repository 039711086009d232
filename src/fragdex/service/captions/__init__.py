"""Caption files: WebVTT, SRT and JSON, read through before they count as complete."""
