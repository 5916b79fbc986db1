"""Model APIs that say what a script says, and keep what they were asked."""

from fake_servers.models import anthropic, completions, responses
from fake_servers.models.script import Answer, Call, ModelRequest, ToolResult
from fake_servers.models.server import ModelServer

__all__ = ["Answer", "Call", "ModelRequest", "ModelServer", "ToolResult", "anthropic", "completions", "responses"]
