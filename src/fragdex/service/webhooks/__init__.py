"""Events sent to URLs of tenants, signed and sent again, as Standard Webhooks says.

worker       the job that makes an attempt: one request to a receiver, its address looked at, no
             redirect followed; writes down what came of it, and orders the next
operations   webhooks, their secrets, their deliveries
"""
