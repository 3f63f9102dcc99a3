/** One GPU or slice: how busy, how full and whose, and what is unknown or wrong, with the reason. */

import type { TranslationBundle } from '@jupyterlab/translation';
import React from 'react';
import { bytes, duration } from '../model/format.js';
import { type History, memoryPercent, POINT_S, type Seen } from '../model/history.js';
import { memoryParts } from '../model/memory.js';
import type { GpuSample } from '../wire/reading.js';
import type { Session } from '../wire/session.js';
import { faults, gaps } from './faults.js';
import { MemoryBar } from './memory.js';
import { Sparkline } from './sparkline.js';
import { baseName, shortId } from './words.js';

interface GpuProps {
  seen: Seen;
  /** The session that holds it, if it is still known. */
  holder: Session | undefined;
  history: History;
  trans: TranslationBundle;
}

export function GpuCard(props: GpuProps): JSX.Element {
  const { seen, holder, trans } = props;
  const title = titleOf(seen, holder);
  return (
    <li className={cardClass(seen.gpu)} aria-label={title}>
      <header>
        <h4 title={seen.gpu.id}>{title}</h4>
        <span className="jp-PaddleGpu-holder">{baseName(holder?.label ?? '')}</span>
      </header>
      <Faults gpu={seen.gpu} trans={trans} />
      <GpuFacts {...props} />
    </li>
  );
}

/** The same in one line that opens, for a machine with many. */
export function GpuLine(props: GpuProps): JSX.Element {
  const { seen, holder, trans } = props;
  const { gpu } = seen;
  const title = titleOf(seen, holder);
  const full = percent(memoryPercent(gpu), trans);
  const [open, setOpen] = React.useState(false);
  return (
    <li className={`${cardClass(gpu)} jp-mod-line`} aria-label={title}>
      <details onToggle={event => setOpen(event.currentTarget.open)}>
        <summary>
          <b title={gpu.id}>{title}</b>{' '}
          <span>{trans.__('%1 busy, %2 full', percent(gpu.utilizationPercent, trans), full)}</span>
        </summary>
        {open && <GpuFacts {...props} />}
      </details>
      <Faults gpu={gpu} trans={trans} />
    </li>
  );
}

function GpuFacts({ seen, holder, history, trans }: GpuProps): JSX.Element {
  const { gpu } = seen;
  const busy = history.line(gpu.id, point => point.utilization.value);
  const full = history.line(gpu.id, point => point.memory.value);
  const kernel = history.last(seen.session)?.kernel ?? null;
  return (
    <>
      <p className="jp-PaddleGpu-detail">{gpu.name}</p>
      <div className="jp-PaddleGpu-chart">
        <svg viewBox={`0 0 ${busy.length} 100`} preserveAspectRatio="none" aria-hidden="true">
          <Sparkline values={full} className="jp-mod-memory" />
          <Sparkline values={busy} className="jp-mod-busy" />
        </svg>
        <span>{trans.__('last %1', duration(busy.length * POINT_S))}</span>
      </div>
      <dl>
        <Fact name={trans.__('Busy')} className="jp-mod-busy" value={percent(gpu.utilizationPercent, trans)} />
        {gpu.temperatureC !== null && <Fact name={trans.__('Temperature')} value={`${gpu.temperatureC} °C`} />}
        {gpu.powerW !== null && <Fact name={trans.__('Power')} value={`${Math.round(gpu.powerW)} W`} />}
        {gpu.clockMhz !== null && <Fact name={trans.__('Clock')} value={`${Math.round(gpu.clockMhz)} MHz`} />}
        <Fact name={trans.__('Memory')} className="jp-mod-memory" value={memory(gpu, trans)} />
      </dl>
      {gpu.memoryTotalBytes !== null && (
        <MemoryBar parts={memoryParts(gpu, kernel, seen.place)} totalBytes={gpu.memoryTotalBytes} trans={trans} />
      )}
      {gaps(gpu, trans).map(text => (
        <p key={text} className="jp-PaddleGpu-detail">
          {text}
        </p>
      ))}
      {holder !== undefined && gpu.processes !== null && (
        <p className="jp-PaddleGpu-detail">{trans._n('%1 process', '%1 processes', gpu.processes)}</p>
      )}
    </>
  );
}

function Faults({ gpu, trans }: { gpu: GpuSample; trans: TranslationBundle }): JSX.Element {
  return (
    <>
      {faults(gpu, trans).map(text => (
        <p key={text} className="jp-PaddleGpu-warning">
          {text}
        </p>
      ))}
    </>
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

function titleOf({ gpu, place }: Seen, holder: Session | undefined): string {
  return `${gpu.kind} ${shortId(holder?.devices[place] ?? gpu.id)}`;
}

function cardClass(gpu: GpuSample): string {
  return `jp-PaddleGpu-card ${gpu.stale === null ? '' : 'jp-mod-stale'}`;
}

function percent(value: number | null, trans: TranslationBundle): string {
  return value === null ? trans.__('n/a') : `${Math.round(value)} %`;
}

function memory(gpu: GpuSample, trans: TranslationBundle): string {
  const { memoryUsedBytes: used, memoryTotalBytes: total } = gpu;
  if (used === null || total === null) {
    return trans.__('n/a');
  }
  return trans.__('%1 of %2 (%3)', bytes(used), bytes(total), percent(memoryPercent(gpu), trans));
}
