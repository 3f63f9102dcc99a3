/** The whole panel. */

import type { TranslationBundle } from '@jupyterlab/translation';
import React from 'react';
import { bytes } from '../model/format.js';
import type { HostSample } from '../wire/reading.js';
import { GpuCard } from './gpu.js';
import { MachineSection } from './machine.js';
import type { Page } from './page.js';
import { RequestSection } from './request.js';
import { SessionCard } from './session.js';
import { TimelineSection } from './timeline.js';
import { baseName } from './words.js';

export function GpuView({ page }: { page: Page }): JSX.Element {
  return (
    <>
      <ConnectionNote page={page} />
      <SessionList page={page} />
      <GpuList page={page} />
      <TimelineSection page={page} />
    </>
  );
}

function ConnectionNote({ page }: { page: Page }): JSX.Element | null {
  const { model, trans } = page;
  if (!model.connection) {
    return null;
  }
  return (
    <p className="jp-PaddleGpu-warning" role="status">
      {trans.__('The server does not answer (%1). What is shown may be old; it is tried again.', model.connection)}
    </p>
  );
}

function SessionList({ page }: { page: Page }): JSX.Element {
  const { model, trans } = page;
  const all = model.sessions.all();
  return (
    <section aria-label={trans.__('Notebooks')}>
      <h3>{trans.__('Notebooks')}</h3>
      <RequestSection page={page} />
      {model.connection === null && <p>{trans.__('Asking the server …')}</p>}
      {model.connection !== null && all.length === 0 && (
        <p>{trans.__('No notebook runs on a GPU. Open one with the kernel “Paddle GPU”.')}</p>
      )}
      <ul>
        {all.map(session => (
          <SessionCard key={session.id} page={page} session={session} />
        ))}
      </ul>
    </section>
  );
}

function GpuList({ page }: { page: Page }): JSX.Element {
  const { model, trans } = page;
  const { history, sessions } = model;
  const name = (session: string): string => baseName(sessions.get(session)?.label ?? '');
  const host = history.host();
  return (
    <section aria-label={trans.__('Devices')}>
      <h3>{trans.__('Devices')}</h3>
      <MachineSection page={page} />
      {[...history.faults()].map(([session, fault]) => (
        <p key={session} className="jp-PaddleGpu-warning">
          {trans.__('%1 sees no GPU: %2', name(session), fault)}
        </p>
      ))}
      <ul>
        {model.heldGpus().map(seen => (
          <GpuCard key={seen.gpu.id} seen={seen} holder={sessions.get(seen.session)} history={history} trans={trans} />
        ))}
      </ul>
      {host !== null && <p className="jp-PaddleGpu-detail">{hostSentence(host, trans)}</p>}
    </section>
  );
}

function hostSentence(host: HostSample, trans: TranslationBundle): string {
  const cpu = host.cpuPercent === null ? trans.__('unknown') : `${Math.round(host.cpuPercent)} %`;
  const cores = host.cpuLimitCores ?? trans.__('unknown');
  const used = host.memoryUsedBytes === null ? trans.__('unknown') : bytes(host.memoryUsedBytes);
  const limit = host.memoryLimitBytes === null ? trans.__('unknown') : bytes(host.memoryLimitBytes);
  return trans.__('This machine: CPU %1 of %2 cores, memory %3 of %4', cpu, cores, used, limit);
}
