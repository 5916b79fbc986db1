"""What a port means, whatever drives it: small programs with expectations, run on every driver."""
