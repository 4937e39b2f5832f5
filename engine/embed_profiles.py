#!/usr/bin/env python3
"""Writes the definition of shipped_profiles() (engine/shipped_profiles.hpp): profiles are found
wherever the program runs.

    python3 engine/embed_profiles.py OUT.cpp PROFILE.csv...
"""

import pathlib
import sys


def main():
    target, *sources = map(pathlib.Path, sys.argv[1:])
    entries = []
    for source in sorted(sources):
        # One literal a line: a literal has a length that compilers accept.
        lines = "\n".join(f'        "{line}\\n"' for line in source.read_text().splitlines())
        entries.append(f'    {{.name = "{source.stem}",\n     .csv =\n{lines}}},\n')
    target.write_text(
        '#include "engine/shipped_profiles.hpp"\n\n#include <array>\n\nnamespace stagger {\n\n'
        "std::span<const ShippedProfile> shipped_profiles() {\n"
        f"  static constexpr std::array<ShippedProfile, {len(entries)}> profiles{{{{\n"
        + "".join(entries) + "  }};\n  return profiles;\n}\n\n}  // namespace stagger\n")


if __name__ == "__main__":
    main()
