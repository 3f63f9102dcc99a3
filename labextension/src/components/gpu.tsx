/** One GPU or slice: how busy, how full, and what is unknown or wrong, with the reason. */

import type { TranslationBundle } from '@jupyterlab/translation';
import React from 'react';
import { bytes } from '../model/format.js';
import { type History, memoryPercent, type Seen } from '../model/history.js';
import type { GpuSample } from '../wire/reading.js';
import type { Session } from '../wire/session.js';
import { Sparkline } from './sparkline.js';
import { baseName, shortId } from './words.js';

interface GpuProps {
  seen: Seen;
  /** The session that holds it, if it is still known. */
  holder: Session | undefined;
  history: History;
  trans: TranslationBundle;
}

export function GpuCard({ seen, holder, history, trans }: GpuProps): JSX.Element {
  const { gpu } = seen;
  const title = `${gpu.kind} ${shortId(holder?.devices[seen.place] ?? gpu.id)}`;
  const busy = history.line(gpu.id, point => point.utilization.value);
  const full = history.line(gpu.id, point => point.memory.value);
  return (
    <li className={`jp-PaddleGpu-card ${gpu.stale === null ? '' : 'jp-mod-stale'}`} aria-label={title}>
      <header>
        <h4 title={gpu.id}>{title}</h4>
        <span className="jp-PaddleGpu-holder">{baseName(holder?.label ?? '')}</span>
      </header>
      <p className="jp-PaddleGpu-detail">{gpu.name}</p>
      <div className="jp-PaddleGpu-chart">
        <svg viewBox={`0 0 ${busy.length} 100`} preserveAspectRatio="none" aria-hidden="true">
          <Sparkline values={full} className="jp-mod-memory" />
          <Sparkline values={busy} className="jp-mod-busy" />
        </svg>
      </div>
      <dl>
        <Fact name={trans.__('Busy')} className="jp-mod-busy" value={percent(gpu.utilizationPercent, trans)} />
        <Fact name={trans.__('Memory')} className="jp-mod-memory" value={memory(gpu, trans)} />
        {gpu.temperatureC !== null && <Fact name={trans.__('Temperature')} value={`${gpu.temperatureC} °C`} />}
        {gpu.powerW !== null && <Fact name={trans.__('Power')} value={`${Math.round(gpu.powerW)} W`} />}
      </dl>
      {faults(gpu, trans).map(text => (
        <p key={text} className="jp-PaddleGpu-warning">
          {text}
        </p>
      ))}
    </li>
  );
}

function Fact(props: { name: string; value: string; className?: string }): JSX.Element {
  return (
    <div className={`jp-PaddleGpu-fact ${props.className ?? ''}`}>
      <dt>{props.name}</dt>
      <dd>{props.value}</dd>
    </div>
  );
}

function percent(value: number | null, trans: TranslationBundle): string {
  return value === null ? trans.__('unknown') : `${Math.round(value)} %`;
}

function memory(gpu: GpuSample, trans: TranslationBundle): string {
  const { memoryUsedBytes: used, memoryTotalBytes: total } = gpu;
  if (used === null || total === null) {
    return trans.__('unknown');
  }
  return trans.__('%1 of %2 (%3)', bytes(used), bytes(total), percent(memoryPercent(gpu), trans));
}

/** Return what is wrong or not known, one sentence each. */
function faults(gpu: GpuSample, trans: TranslationBundle): string[] {
  const found: string[] = [];
  if (gpu.stale !== null) {
    found.push(trans.__('These values are old: %1', gpu.stale));
  }
  if (gpu.throttled.length > 0) {
    found.push(trans.__('Slowed down: %1', gpu.throttled.join(', ')));
  }
  if (gpu.eccErrors) {
    found.push(
      trans._n('%1 memory error that was not corrected', '%1 memory errors that were not corrected', gpu.eccErrors)
    );
  }
  const reason = gpu.unknown.utilization_percent ?? gpu.unknown.memory_used_bytes;
  if (reason && gpu.stale === null) {
    found.push(trans.__('Unknown: %1', reason));
  }
  return found;
}
