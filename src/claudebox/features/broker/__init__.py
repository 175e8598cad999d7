"""`--auth broker`: the credential stays outside, and the box gets a socket to somebody who uses it for the box."""
