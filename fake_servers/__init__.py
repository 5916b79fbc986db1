"""Stand-ins for what runtimes start and talk to: MCP servers and npm, over any world."""
