"""What takes long: the probes asked of every fake with every line of its profile changed."""
