"""What a process can do to itself: call the C library, enter namespaces, close descriptors, end with its parent."""
