"""Claude's login as it lies in a file: what is in it, how it is read and replaced, and the locks around it.

Two features use it: `login` keeps the host's file and the boxes' copy in step, `broker` renews the host's. Claude Code
works on the same files at the same time, on the host and in the boxes, so both do as it does.
"""
