"""The files of a source tree, wherever it comes from."""

import shutil
import subprocess


def files_of(tree):
    """Paths, from the tree's root: what git knows of it, or would; of a tree that git does not know, as a tarball's, all but
    what is built."""
    said = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=tree, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) if shutil.which("git") else None
    if said is None or said.returncode:
        found = [path.relative_to(tree) for path in tree.rglob("*") if path.is_symlink() or not path.is_dir()]
        return sorted(str(path) for path in found if not path.parts[0].startswith("build") and "__pycache__" not in path.parts)
    return [name for name in said.stdout.decode().split("\0") if name and ((tree / name).exists() or (tree / name).is_symlink())]
