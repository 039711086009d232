"""What every HTTP server of the house shares: the service's and the origin's."""
