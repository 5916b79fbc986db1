"""What each command takes: one module a command, which imports nothing that the command does its work with.

Whoever asks for help, or mistypes an option, does not pay for that.
"""
