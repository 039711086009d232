"""The self-hosted media service: `fragdex serve`, over the library's public names.

config      settings, and where each value comes from
store       bytes by key: local disk, object stores
records     tables, migrations, identifiers, tenants and keys
jobs        the interface to the engine, and the failure detector
context       the parts above, put together: what every operation is given
web         errors → status, byte ranges, events, authentication
uploads     bytes that arrive in chunks, durable and resumable
isobmff, images, unprocessed, captions, files, renders, transcriptions
            the families; each has model, operations (no HTTP), routes (no decisions), worker
app         everything as one ASGI application
"""
