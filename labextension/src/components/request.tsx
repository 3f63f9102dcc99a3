/** The form that asks for a GPU, or for another one, for the notebook in front. */

import React from 'react';
import type { RequestFields } from '../api/server.js';
import { type Fit, fitOf } from '../model/fit.js';
import type { Current, Page } from './page.js';
import { Outcome, useWork } from './work.js';

export function RequestSection({ page }: { page: Page }): JSX.Element {
  const { trans } = page;
  const current = page.current();
  return (
    <details className="jp-PaddleGpu-request">
      <summary>{trans.__('Get a GPU')}</summary>
      {current === null ? (
        <p>{trans.__('Open a notebook first: the GPU is for the notebook in front.')}</p>
      ) : (
        <RequestForm key={current.kernel} page={page} current={current} />
      )}
    </details>
  );
}

function RequestForm({ page, current }: { page: Page; current: Current }): JSX.Element {
  const { trans, model, server } = page;
  const session = model.sessions.get(current.kernel);
  const asked = session?.wanted ?? session?.request;
  const work = useWork();
  const [gpus, setGpus] = React.useState(Math.max(1, asked?.gpus ?? 1));
  const [tier, setTier] = React.useState(asked?.tier ?? 'notebook');
  const [memory, setMemory] = React.useState('');
  const [grace, setGrace] = React.useState(`${asked?.graceS ?? 60}s`);
  const send = async (): Promise<string> => {
    const request: RequestFields = { gpus, tier, grace, ...(memory && { memory }) };
    if (session === undefined) {
      return server.move(current.kernel, request);
    }
    await server.change(current.kernel, request);
    return trans.__('Asked for.');
  };
  const submit = (event: React.FormEvent): void => {
    event.preventDefault();
    work.run(send);
  };
  return (
    <form onSubmit={submit} aria-label={trans.__('Get a GPU for %1', current.name)}>
      <p>{trans.__('For %1:', current.name)}</p>
      <label>
        <span>{trans.__('GPUs')}</span>
        <input type="number" min="1" value={gpus} onChange={event => setGpus(event.target.valueAsNumber || 1)} />
      </label>
      <label>
        <span>{trans.__('Tier')}</span>
        <select value={tier} onChange={event => setTier(event.target.value)}>
          {(model.machine?.tiers ?? []).map(({ name, description }) => (
            <option key={name} value={name} title={description}>
              {name}
            </option>
          ))}
        </select>
      </label>
      <label>
        <span>{trans.__('Memory')}</span>
        <input value={memory} placeholder="16Gi" onChange={event => setMemory(event.target.value)} />
      </label>
      <label>
        <span title={trans.__('Time to save after a notice')}>{trans.__('Grace')}</span>
        <input value={grace} placeholder="60s" onChange={event => setGrace(event.target.value)} />
      </label>
      <p role="status">{fitSentence(page, tier, gpus)}</p>
      <button type="submit" className="jp-PaddleGpu-button jp-mod-main" disabled={work.busy}>
        {trans.__('Ask for it')}
      </button>
      <Outcome work={work} />
    </form>
  );
}

function fitSentence({ model, trans }: Page, tier: string, gpus: number): string {
  const fit = model.machine && fitOf(model.machine, tier, gpus);
  if (!model.machine || !fit) {
    return '';
  }
  const sentences: Record<Fit, string> = {
    now: trans.__('Free now.'),
    taking: trans.__('Free as soon as lower tiers have saved and given way.'),
    queue: trans.__('Not free now: the request waits in the queue.'),
    never: trans.__('This machine has only %1.', model.machine.total)
  };
  return sentences[fit];
}
