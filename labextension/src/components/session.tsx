/** One session: what it holds or waits for, what happens to it, how safe it is, and what can be done. */

import React from 'react';
import { bytes, duration } from '../model/format.js';
import { remainingS } from '../model/sessions.js';
import type { RestoredFrom, Saved, Session } from '../wire/session.js';
import { Countdown } from './countdown.js';
import type { Page } from './page.js';
import { ShelfSection } from './shelf.js';
import { Training } from './training.js';
import { asks, baseName, holds, memorySentence, stateWord } from './words.js';
import { Outcome, useWork, WorkButton } from './work.js';

interface SessionProps {
  page: Page;
  session: Session;
}

export function SessionCard({ page, session }: SessionProps): JSX.Element {
  const { trans, model } = page;
  const leftS = remainingS(session, model.nowMs);
  const reading = model.history.last(session.id);
  const died = memorySentence(trans, session.exitCode, reading?.host.memoryLimitBytes ?? null);
  return (
    <li className={`jp-PaddleGpu-card jp-mod-${session.state}`} aria-label={session.label}>
      <header>
        <h4 title={session.label}>{baseName(session.label)}</h4>
        <span className="jp-PaddleGpu-state">{stateWord(trans, session.state)}</span>
      </header>
      <p className="jp-PaddleGpu-facts">
        <span>{holds(trans, session)}</span>
        <span title={trans.__('Tier')}>{session.request.tier}</span>
      </p>
      {leftS !== null && <Countdown leftS={leftS} ofS={session.request.graceS} trans={trans} />}
      <Waits page={page} session={session} />
      {session.detail && <p className="jp-PaddleGpu-detail">{session.detail}</p>}
      {died && <p className="jp-PaddleGpu-warning">{died}</p>}
      {session.saved !== null && <p className="jp-PaddleGpu-saved">{savedSentence(page, session.saved)}</p>}
      {session.restored !== null && <p>{restoredSentence(page, session.restored)}</p>}
      <Training page={page} session={session} reading={reading} />
      {session.logTail && (
        <details>
          <summary>{trans.__('Last lines of the kernel')}</summary>
          <pre>{session.logTail}</pre>
        </details>
      )}
      <Actions page={page} session={session} />
      <ShelfSection page={page} session={session} />
    </li>
  );
}

function Waits({ page: { trans }, session }: SessionProps): JSX.Element | null {
  if (session.position === null && session.wanted === null && !session.why) {
    return null;
  }
  const request = asks(trans, session.wanted ?? session.request);
  const place =
    session.position === null
      ? trans.__('Asks for %1', request)
      : trans.__('Asks for %1: position %2', request, session.position);
  return (
    <p className="jp-PaddleGpu-waits">
      <b>{place}</b> {session.why}
    </p>
  );
}

function savedSentence({ trans, model }: Page, { step, bytes: size, createdS }: Saved): string {
  const ago = duration(Math.max(0, model.nowMs / 1000 - (createdS ?? 0)));
  if (createdS === null) {
    return step === null ? trans.__('Saved (%1)', bytes(size)) : trans.__('Saved at step %1 (%2)', step, bytes(size));
  }
  return step === null
    ? trans.__('Saved %1 ago (%2)', ago, bytes(size))
    : trans.__('Saved at step %1, %2 ago (%3)', step, ago, bytes(size));
}

function restoredSentence({ trans }: Page, { step, lostSteps }: RestoredFrom): string {
  const from = step === null ? trans.__('Restored') : trans.__('Restored at step %1', step);
  if (lostSteps === null) {
    return from;
  }
  return `${from}: ${lostSteps === 0 ? trans.__('nothing lost') : trans._n('%1 step lost', '%1 steps lost', lostSteps)}`;
}

function Actions({ page, session }: SessionProps): JSX.Element | null {
  const { trans, server, confirm } = page;
  const work = useWork();
  const name = baseName(session.label);
  const save = async (): Promise<string> => {
    const saved = await server.save(session.id);
    return saved ? trans.__('Saved.') : trans.__('The save goes on.');
  };
  const release = async (): Promise<string> => {
    const body = trans.__('The training is saved first; then the kernel starts again without a GPU.');
    if (await confirm(trans.__('Give back the GPU of %1?', name), body, trans.__('Give it back'))) {
      await server.release(session.id);
    }
    return '';
  };
  if (session.state !== 'running') {
    return null;
  }
  return (
    <>
      <div className="jp-PaddleGpu-actions">
        <WorkButton work={work} what={save} label={trans.__('Save %1 now', name)}>
          {trans.__('Save now')}
        </WorkButton>
        {session.devices.length > 0 && (
          <WorkButton work={work} what={release} label={trans.__('Give back the GPU of %1', name)}>
            {trans.__('Give back')}
          </WorkButton>
        )}
      </div>
      <Outcome work={work} />
    </>
  );
}
