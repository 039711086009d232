"""Events sent to URLs of tenants, signed and sent again, as Standard Webhooks says.

schedule     when a delivery that failed is tried again
sending      one request to a receiver: its address looked at, no redirect followed
worker       the job that makes an attempt and writes down what came of it
operations   webhooks, their secrets, their deliveries
"""
