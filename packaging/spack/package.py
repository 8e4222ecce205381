# SPDX-License-Identifier: MIT OR Apache-2.0
import os

from spack.package import *

try:
    from spack_repo.builtin.build_systems.generic import Package
except ImportError:
    pass  # Before Spack 1.0 it is in spack.package.


class Numakit(Package):
    """See, record and place programs on NUMA machines. The sources have all crates and the built page."""

    homepage = "file://" + os.path.dirname(__file__)
    # Put the file beside where 'spack install' runs, or into a mirror.
    manual_download = True
    url = "file://{0}/numakit-@VERSION@-source.tar.gz".format(os.getcwd())

    license("MIT OR Apache-2.0")

    version("@VERSION@", sha256="@SOURCE@")

    depends_on("c", type="build")
    depends_on("gmake", type="build")
    depends_on("rust@1.95:", type="build")

    conflicts("platform=darwin", msg="numakit reads the files of Linux")
    conflicts("platform=windows", msg="numakit reads the files of Linux")

    def install(self, spec, prefix):
        cargo = which("cargo", required=True)
        cargo("install", "--offline", "--frozen", "--path", "crates/cli", "--root", prefix)
        numa = Executable(join_path(prefix.bin, "numa"))
        numa("man", "--dir", join_path(prefix.share, "man", "man1"))
        mkdirp(prefix.include)
        install("native/include/*.h", prefix.include)

    @run_after("install")
    def check_topology(self):
        Executable(join_path(self.prefix.bin, "numa"))("topo", output=os.devnull)
