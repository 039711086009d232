"""Two things that pyproject.toml cannot say: the C extension is optional, and readers are packed.

Everything else about the package stands in pyproject.toml. The readers of the binary index for C
and for browsers, which Python does not need, are one archive. ``fragdex._native`` is built for the
stable ABI of Python 3.11, so that one build serves all later versions. A free-threaded Python
has no stable ABI before 3.15, other interpreters have none at all: there, where no compiler is,
and with FRAGDEX_PURE_PYTHON=1, the package is built without it and walks boxes in pure Python.
"""

import os
import platform
import sys
import sysconfig
import tarfile
from pathlib import Path

from setuptools import Extension, setup

NATIVE = sorted(Path("src/fragdex/native").glob("*.c"))
HEADERS = sorted(Path("src/fragdex/native").glob("*.h"))
STABLE_ABI = platform.python_implementation() == "CPython" and not sysconfig.get_config_var(
    "Py_GIL_DISABLED"
)
FORMATS = Path("src/fragdex/formats")
READERS = [FORMATS / "fidx.h", *sorted((FORMATS / "fidx-js").iterdir())]


def plain(member):
    """The same bytes whoever packs them, and when."""
    member.uid = member.gid = member.mtime = 0
    member.uname, member.gname, member.mode = "", "", 0o644
    return member


with tarfile.open(FORMATS / "readers.tar.xz", "w:xz", format=tarfile.USTAR_FORMAT) as archive:
    for path in READERS:
        archive.add(path, path.relative_to(FORMATS).as_posix(), filter=plain)

SMALL = [] if "CFLAGS" in os.environ else ["-g0", "-fno-asynchronous-unwind-tables"]

if NATIVE and STABLE_ABI and not os.environ.get("FRAGDEX_PURE_PYTHON"):
    setup(
        ext_modules=[
            Extension(
                "fragdex._native",
                [source.as_posix() for source in NATIVE],
                depends=[header.as_posix() for header in HEADERS],
                define_macros=[("Py_LIMITED_API", "0x030B0000")],
                # Without debug information it takes a quarter of the room; CFLAGS may want it.
                extra_compile_args=SMALL if os.name == "posix" else [],
                extra_link_args=["-Wl,-s"] if SMALL and sys.platform == "linux" else [],
                py_limited_api=True,
                optional=True,
            )
        ],
        options={"bdist_wheel": {"py_limited_api": "cp311"}},
    )
else:
    setup()
