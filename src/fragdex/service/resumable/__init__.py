"""Resumable uploads, over the same files, bytes and leases as all other uploads.

operations  uploads that are begun before their bytes come, and parts; no HTTP
appending   the next bytes, from the body of a request; one request at a time
tus         tus 1.0: its headers and routes
draft       the same of the IETF's draft of resumable uploads for HTTP
"""
