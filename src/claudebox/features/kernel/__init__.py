"""What the box may ask of the kernel: system calls, user namespaces, /proc."""
