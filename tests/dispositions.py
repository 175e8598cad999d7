"""What the programs that a test starts find done with their signals.

Whoever starts the tests may ignore some: `nohup` does, and so does a shell without job control for what it starts in
the background. A program inherits that, and Python then has no handler for Ctrl-C. A handler is not inherited.
"""

import signal

FIXED = {signal.SIGKILL, signal.SIGSTOP}
PYTHONS_OWN = {signal.SIGPIPE, signal.SIGXFSZ}  # ignored by every Python, which gives them back to its children


def pytest_configure() -> None:
    for number in signal.valid_signals() - FIXED - PYTHONS_OWN:
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    if signal.getsignal(signal.SIGINT) == signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
