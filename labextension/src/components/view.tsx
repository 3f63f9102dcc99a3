/** The whole panel. */

import type { TranslationBundle } from '@jupyterlab/translation';
import React from 'react';
import { bytes, duration } from '../model/format.js';
import type { Unseen } from '../model/model.js';
import type { HostSample } from '../wire/reading.js';
import { GpuCard, GpuLine } from './gpu.js';
import { MachineSection } from './machine.js';
import type { Page } from './page.js';
import { RequestSection } from './request.js';
import { SessionCard } from './session.js';
import { TimelineSection } from './timeline.js';
import { baseName } from './words.js';

const MANY = 4; // more GPUs than this are a line each, which opens

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
  const host = history.host();
  const held = model.heldGpus();
  const Gpu = held.length > MANY ? GpuLine : GpuCard;
  return (
    <section aria-label={trans.__('Devices')}>
      <h3>{trans.__('Devices')}</h3>
      <MachineSection page={page} />
      {model.unseen().map(unseen => (
        <p key={unseen.session.id} className="jp-PaddleGpu-warning">
          {unseenSentence(unseen, trans)}
        </p>
      ))}
      <ul>
        {held.map(seen => (
          <Gpu key={seen.gpu.id} seen={seen} holder={sessions.get(seen.session)} history={history} trans={trans} />
        ))}
      </ul>
      {host !== null && <p className="jp-PaddleGpu-detail">{hostSentence(host, trans)}</p>}
    </section>
  );
}

function unseenSentence({ session, fault, silentS }: Unseen, trans: TranslationBundle): string {
  const name = baseName(session.label);
  return fault === null
    ? trans.__(
        'Nothing has been told of the devices of %1 for %2: the driver hangs, or its agent.',
        name,
        duration(silentS)
      )
    : trans.__('%1 sees no GPU: %2', name, fault);
}

function hostSentence(host: HostSample, trans: TranslationBundle): string {
  const cpu = host.cpuPercent === null ? trans.__('unknown') : `${Math.round(host.cpuPercent)} %`;
  const cores = host.cpuLimitCores ?? trans.__('unknown');
  const used = host.memoryUsedBytes === null ? trans.__('unknown') : bytes(host.memoryUsedBytes);
  const limit = host.memoryLimitBytes === null ? trans.__('unknown') : bytes(host.memoryLimitBytes);
  return trans.__('This machine: CPU %1 of %2 cores, memory %3 of %4', cpu, cores, used, limit);
}
