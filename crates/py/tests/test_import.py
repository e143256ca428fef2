import subprocess
import sys


def test_importing_starts_no_thread_and_needs_nothing():
    code = (
        "import sys, trawl, os; "
        "assert len(os.listdir('/proc/self/task')) == 1; "
        "assert not {'pyarrow', 'pandas', 'polars', 'numpy'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
