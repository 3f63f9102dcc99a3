/** A ring that empties with the grace, and the seconds in it. */

import type { TranslationBundle } from '@jupyterlab/translation';
import React from 'react';
import { duration } from '../model/format.js';

const RADIUS = 16;
const AROUND = 2 * Math.PI * RADIUS;

export function Countdown(props: { leftS: number; ofS: number; trans: TranslationBundle }): JSX.Element {
  const share = props.ofS > 0 ? Math.min(1, props.leftS / props.ofS) : 0;
  const left = duration(Math.ceil(props.leftS));
  return (
    <div className="jp-PaddleGpu-countdown" role="timer" aria-label={props.trans.__('%1 left for the save', left)}>
      <svg viewBox="0 0 40 40" aria-hidden="true">
        <circle cx="20" cy="20" r={RADIUS} className="jp-PaddleGpu-ring" />
        <circle
          cx="20"
          cy="20"
          r={RADIUS}
          className="jp-PaddleGpu-ring jp-mod-left"
          strokeDasharray={`${AROUND * share} ${AROUND}`}
          transform="rotate(-90 20 20)"
        />
      </svg>
      <span>{left}</span>
    </div>
  );
}
