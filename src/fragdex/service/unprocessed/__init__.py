"""Files as they come: uploaded, and processed into ISOBMFF files."""
