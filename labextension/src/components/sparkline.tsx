/** A line of percents over the last hour; where nothing is known there is no line. */

import React from 'react';

export function Sparkline(props: { values: readonly (number | null)[]; className: string }): JSX.Element {
  return (
    <path
      className={`jp-PaddleGpu-line ${props.className}`}
      d={pathOf(props.values)}
      vectorEffect="non-scaling-stroke"
      fill="none"
    />
  );
}

/** Return an SVG path in a box as wide as there are values and 100 high. */
export function pathOf(values: readonly (number | null)[]): string {
  let path = '';
  let drawing = false;
  values.forEach((value, x) => {
    if (value !== null) {
      const y = Math.round(100 - Math.min(100, Math.max(0, value)));
      path += drawing ? `L${x} ${y}` : `M${x} ${y}h1`;
    }
    drawing = value !== null;
  });
  return path;
}
