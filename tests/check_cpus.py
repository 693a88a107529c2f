"""Runs the tests that compare numbers to the bit as other CPUs would round them.

OpenBLAS picks its kernels by the CPU, and other kernels add in another order. Sums are equal to the
bit only for the same blocks in the same order; a test that compares anything else to the bit passes
by luck. `make check-cpus` runs such tests with the kernels of several CPUs, and with products that
are off by a bit or two depending on the shape of their operands (`rounding.c`), which shows on one
machine what would fail on another.
"""

import os
import pathlib
import re
import subprocess
import sys
import sysconfig
import tempfile

TESTS = pathlib.Path(__file__).parent
EXACT = re.compile(r"array_equal\(|check_exact=True|\w_ == |score\(.*\) == |tobytes\(\)")
# From the oldest; the last needs AVX-512.
KERNELS = ("Nehalem", "Haswell", "Zen", "SkylakeX")


def exact_tests():
    """Files whose tests compare numbers to the bit."""
    mine = pathlib.Path(__file__)
    files = (file for file in sorted(TESTS.rglob("test_*.py")) if file != mine)
    return [str(file) for file in files if EXACT.search(file.read_text(encoding="utf-8"))]


def kernels_in(environment):
    """The kernels that OpenBLAS takes in this environment, or what kept it from starting."""
    ask = "import numpy, threadpoolctl as t; print(t.threadpool_info()[0].get('architecture'))"
    done = subprocess.run(
        [sys.executable, "-c", ask], env=environment, capture_output=True, text=True, check=False
    )
    return done.stdout.strip() or f"exit status {done.returncode}"


def rounding_by_shape(folder):
    """Products round by their shape in this environment; None without a compiler or OpenBLAS."""
    site = pathlib.Path(sysconfig.get_path("purelib"))
    libraries = sorted((site / "numpy.libs").glob("libscipy_openblas64_*.so"))
    shim = folder / "rounding.so"
    command = ["cc", "-O2", "-shared", "-fPIC", str(TESTS / "rounding.c"), "-o", str(shim), "-ldl"]
    try:
        subprocess.run(command, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    if not libraries:
        return None
    return {**os.environ, "LD_PRELOAD": str(shim), "ROUNDING_BLAS": str(libraries[0])}


def main():
    """Run every setting that this machine can, and say which it cannot."""
    failed, ran = [], set()
    with tempfile.TemporaryDirectory() as folder:
        settings = {name: {**os.environ, "OPENBLAS_CORETYPE": name} for name in KERNELS}
        settings["rounding by shape"] = rounding_by_shape(pathlib.Path(folder))
        for name, environment in settings.items():
            if environment is None:
                print(f"{name}: skipped, which needs Linux, a C compiler and NumPy's OpenBLAS")
                continue
            kernels = kernels_in(environment)
            if name in KERNELS and kernels in ran:
                # Zen has Haswell's kernels, and a CPU without AVX-512 does not take SkylakeX's.
                print(f"{name}: OpenBLAS takes the kernels of {kernels} for it, which ran")
                continue
            print(f"{name}: kernels of {kernels}", flush=True)
            ran.add(kernels)
            command = [sys.executable, "-m", "pytest", "--quiet", "--numprocesses", "auto"]
            command += ["--maxprocesses", "4", "--dist", "worksteal", *sys.argv[1:]]
            if subprocess.run([*command, *exact_tests()], env=environment, check=False).returncode:
                failed.append(name)
    sys.exit(f"failed with: {', '.join(failed)}" if failed else 0)


if __name__ == "__main__":
    main()
