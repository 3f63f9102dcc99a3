/** What of this machine is free, and who has the rest. */

import React from 'react';
import type { Machine, MachineDevice } from '../wire/machine.js';
import type { Page } from './page.js';
import { baseName, shortId } from './words.js';

export function MachineSection({ page }: { page: Page }): JSX.Element | null {
  const { model, trans } = page;
  const { machine } = model;
  if (machine === null) {
    return null;
  }
  const others = machine.devices.filter(device => device.holder !== null && device.holder.session === null);
  const waiting = machine.waiting.filter(request => request.session === null);
  return (
    <>
      <p>
        <b>{freeSentence(machine, page)}</b>
      </p>
      {(others.length > 0 || waiting.length > 0) && (
        <ul className="jp-PaddleGpu-others" aria-label={trans.__('Others on this machine')}>
          {others.map(device => (
            <li key={device.id}>{heldSentence(device, page)}</li>
          ))}
          {waiting.map(request => (
            <li key={`${request.position} ${request.label}`}>
              {trans.__('%1 (%2) waits at position %3', baseName(request.label), request.tier, request.position)}
            </li>
          ))}
        </ul>
      )}
    </>
  );
}

function freeSentence({ total, free, devices }: Machine, { trans }: Page): string {
  return devices.some(device => device.kind !== 'CPU')
    ? trans.__('%1 of %2 GPUs free', free, total)
    : trans.__('No GPU on this machine: %1 of %2 CPU slots free', free, total);
}

function heldSentence(device: MachineDevice, { trans }: Page): string {
  const { label, owner, tier } = device.holder ?? { label: '', owner: '', tier: '' };
  const what = device.kind === 'CPU' ? trans.__('CPU slot') : `${device.kind} ${shortId(device.id)}`;
  return trans.__('%1: %2 (%3) of %4', what, baseName(label), tier, owner);
}
