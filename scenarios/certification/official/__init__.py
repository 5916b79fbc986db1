"""The official conformance suite of MCP against the fake servers, each check compared with a baseline."""
