/** One session: what it holds or waits for, what happens to it, and how safe it is. */

import type { TranslationBundle } from '@jupyterlab/translation';
import React from 'react';
import { remainingS } from '../model/sessions.js';
import type { Session } from '../wire/session.js';
import { Countdown } from './countdown.js';
import { asks, baseName, holds, stateWord } from './words.js';

interface SessionProps {
  session: Session;
  nowMs: number;
  trans: TranslationBundle;
}

export function SessionCard({ session, nowMs, trans }: SessionProps): JSX.Element {
  const leftS = remainingS(session, nowMs);
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
      <Waits session={session} trans={trans} />
      {session.detail && <p className="jp-PaddleGpu-detail">{session.detail}</p>}
      {session.snapshot !== null && <p className="jp-PaddleGpu-saved">{savedSentence(session, trans)}</p>}
      {session.logTail && (
        <details>
          <summary>{trans.__('Last lines of the kernel')}</summary>
          <pre>{session.logTail}</pre>
        </details>
      )}
    </li>
  );
}

function Waits(props: { session: Session; trans: TranslationBundle }): JSX.Element | null {
  const { session, trans } = props;
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

function savedSentence(session: Session, trans: TranslationBundle): string {
  return session.step === null ? trans.__('Saved') : trans.__('Saved at step %1', session.step);
}
