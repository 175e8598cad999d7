"""The first module of the single file. Any Python 3 has to understand it."""

import sys


def start():
    # type: () -> None
    if sys.version_info < (3, 11):
        sys.stderr.write("error: claudebox needs Python 3.11 or later, and this is %d.%d\n" % sys.version_info[:2])
        sys.exit(125)
    if not (sys.flags.isolated and sys.flags.no_site):
        # Nothing of the environment or of the current directory, which is a project, gets on the module path.
        import os

        os.execv(sys.executable, [sys.executable, "-I", "-S", sys.path[0], *sys.argv[1:]])
    import gc

    gc.disable()  # nothing lives long enough here to be collected as garbage
    from claudebox.process.single_file import serve_from_memory

    serve_from_memory()
    from claudebox.cli import main

    main()


start()
