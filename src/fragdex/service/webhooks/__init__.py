"""Events sent to URLs of tenants, signed and sent again, as Standard Webhooks says.

sending      one request to a receiver: its address looked at, no redirect followed
worker       the job that makes an attempt, writes down what came of it, and orders the next
operations   webhooks, their secrets, their deliveries
"""
