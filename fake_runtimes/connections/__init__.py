"""An MCP client over a world: stdio, streamable HTTP and the older HTTP with server-sent events."""
