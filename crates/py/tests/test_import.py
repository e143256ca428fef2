import os
import pathlib
import subprocess
import sys
import zipfile

import trawl


def test_importing_starts_no_thread_and_needs_nothing():
    code = (
        "import sys, trawl, os; "
        "assert len(os.listdir('/proc/self/task')) == 1; "
        "assert not {'pyarrow', 'pandas', 'polars', 'numpy'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_wheel_is_small_and_for_every_python():
    wheel = pathlib.Path(os.environ["WHEEL"])
    assert wheel.name.startswith(f"trawl-{trawl.__version__}-cp311-abi3-")
    assert wheel.stat().st_size <= 15_000_000
    names = zipfile.ZipFile(wheel).namelist()
    assert {"trawl/py.typed", "trawl/_trawl.pyi", "trawl/_trawl.abi3.so"} <= set(names)
    assert "Requires-Dist" not in zipfile.ZipFile(wheel).read(
        next(name for name in names if name.endswith("METADATA"))
    ).decode()


def test_every_public_name_has_documentation_and_a_stub():
    stub = pathlib.Path(trawl.__file__).with_name("_trawl.pyi").read_text()
    native = trawl._trawl
    for name in vars(native):
        if name.startswith("__"):
            continue
        thing = getattr(native, name)
        assert f"class {name}" in stub or f"def {name}(" in stub, name
        assert thing.__doc__, name
        if isinstance(thing, type) and not issubclass(thing, Exception):
            for member in vars(thing):
                if not member.startswith("__"):
                    assert f"def {member}(" in stub.split(f"class {name}", 1)[1].split("\nclass ", 1)[0], (name, member)
                    assert getattr(thing, member).__doc__, (name, member)
