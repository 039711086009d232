"""Bytes that arrive in requests: durable, resumable, hashed on their way, one writer at a time.

model           what an upload is, and how a family takes its bytes
leases          the row of an upload: who writes, how far it is durable
hashing         md5, sha-256 and a family's watcher over the bytes, in threads; kept between chunks
upload_session  one request's bytes, from the lease to the answer
completion      the last byte: md5, the object, the record, one transaction
operations      begin, state, receive; parts that clients put into the object store
receiving       the body of a request, whatever protocol it came by, as bytes of an upload
repository      records of tenants: found and listed; files that are kept as they came
family          the routes of a family of records, upload and all

Protocols are faces of this: chunks by Content-Range in `family`, tus and the IETF's draft in the
room `resumable`.
"""
