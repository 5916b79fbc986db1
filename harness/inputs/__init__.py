"""The one door to files, git and the environment: bytes come in here, values go on. Source: ARCHITECTURE section 9."""
