"""The npx rules on the operating system's own files: trees on disk, real users, real processes, what stays outside."""
