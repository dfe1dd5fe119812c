"""The routes, one router per idea. Each is a function from a service to a router; `aircl.serve.app` puts them together.

What scope a route needs is said in `aircl.serve.guard`.
"""
