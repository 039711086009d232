"""Renders of pages and archives for tenants, by `fragdex.rendering`."""
