"""Draw what ``benchmarks.growth`` measured, with two logarithmic scales.

    python -m benchmarks.growth_pictures GROWTH.json docs/pictures

One SVG for each quantity of each series.  Whatever grows in proportion to size is parallel to the
thin grey line.  Needs matplotlib (the extra ``dev``).
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import matplotlib

matplotlib.use("svg")
from matplotlib import pyplot
from matplotlib.axes import Axes

from benchmarks.growth import SERIES, values_of

#: Text stays text, so that pictures are small; ids do not change from one run to the next.
_STYLE: Final = {"svg.fonttype": "none", "svg.hashsalt": "growth", "font.size": 9}
_LINES: Final = {
    "tensorflow": ("TensorFlow", "#d9822b", "s"),
    "penstock": ("Penstock", "#2b6cb0", "o"),
}
_AXES: Final = {
    "load": ("seconds to the first result", 1.0),
    "step": ("seconds of a step", 1.0),
    "bytes": ("megabytes", 1e-6),
}


@matplotlib.rc_context(_STYLE)
def draw(name: str, found: Mapping[int, Any], folder: Path) -> list[Path]:
    """The pictures of one series."""
    series, paths = SERIES[name], []
    for quantity in series.quantities:
        figure, axes = pyplot.subplots(figsize=(3.6, 2.7), layout="constrained")
        title, scale = _AXES[quantity]
        for engine, (label, colour, marker) in _LINES.items():
            values = values_of(found, engine, quantity)
            points = [value * scale for value in values.values()]
            axes.loglog(
                list(values), points, color=colour, marker=marker, markersize=4, label=label
            )
        if not series.is_of_threads:
            _draw_proportion(axes)
        else:
            axes.set_xticks(series.sizes, map(str, series.sizes))
            axes.set_ylim(bottom=axes.get_ylim()[0] / 3, top=axes.get_ylim()[1] * 3)
        axes.set_xlabel(series.unit)
        axes.set_ylabel(title)
        axes.minorticks_off()  # which would be most of the file
        axes.grid(visible=True, which="major", linewidth=0.3)
        axes.legend(frameon=False)
        paths.append(folder / f"growth_{name}_{quantity}.svg")
        figure.savefig(paths[-1], metadata={"Date": None, "Creator": None})
        pyplot.close(figure)
    return paths


def _draw_proportion(axes: Axes) -> None:
    """A line of slope 1 through the upper right corner of what is drawn."""
    (left, right), (bottom, top) = axes.get_xlim(), axes.get_ylim()
    axes.plot([left, right], [top * left / right, top], color="#999999", linewidth=0.6)
    axes.set_xlim(left, right)
    axes.set_ylim(bottom, top)


def main() -> None:
    """Draw all that was measured."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("json", type=Path, help="what benchmarks.growth --json wrote")
    parser.add_argument("folder", type=Path)
    args = parser.parse_args()
    report = json.loads(args.json.read_text("utf-8"))
    args.folder.mkdir(parents=True, exist_ok=True)
    for name, found in report.items():
        by_size = {int(size): engines for size, engines in found.items()}
        for path in draw(name, by_size, args.folder):
            print(path, path.stat().st_size, "bytes")


if __name__ == "__main__":
    main()
