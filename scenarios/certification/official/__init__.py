"""The official conformance suite of MCP against the fake servers, the fake providers and the reference's OAuth client,
each check compared with a baseline.
"""
