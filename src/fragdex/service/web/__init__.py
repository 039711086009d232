"""HTTP for all families: errors → answers, byte ranges, events, authentication, limits.

A family's routes.py takes from here what every route has in common:

routing      `api_router`: routes that document their errors, limit and replay their bodies
problems     every error class and its answer, in one table
auth         the caller: keys, URL tokens
idempotency  answers of creating requests, kept and replayed
bodies       request bodies: limited, timed, handed to a thread
ranges       stored bytes → 200, 206, 304, 416; ETag, If-None-Match, Accept
events       server-sent events; one look at the database for all that listen
rates, front, health, documents, server
             what wraps every request, and the server itself
"""
