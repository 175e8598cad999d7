"""What the box may ask of the kernel: system calls and user namespaces."""
