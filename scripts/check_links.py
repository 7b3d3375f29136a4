#!/usr/bin/env python3
"""Every relative link of every Markdown file must lead to something in the repository."""

import pathlib
import re
import subprocess
import sys

LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)(?:#[^)]*)?\)")


def broken(root):
    command = ["git", "ls-files", "-co", "--exclude-standard", "*.md"]
    names = subprocess.run(command, cwd=root, check=True, capture_output=True, text=True).stdout.split()
    for name in names:
        path = root / name
        for target in LINK.findall(path.read_text(encoding="utf-8")):
            if "://" not in target and not target.startswith("mailto:"):
                if not (path.parent / target).exists():
                    yield f"{name}: nothing at {target}"


def main():
    found = list(broken(pathlib.Path(__file__).resolve().parent.parent))
    print("\n".join(found) or "check_links: every link leads somewhere")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
