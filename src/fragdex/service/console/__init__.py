"""The console at `/`: the whole service in a browser, over nothing but its HTTP interface."""
