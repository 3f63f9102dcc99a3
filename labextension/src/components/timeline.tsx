/** What has happened since the page was opened. */

import React from 'react';
import type { Page } from './page.js';
import { baseName, memorySentence, stateWord } from './words.js';

const SHOWN = 20;

export function TimelineSection({ page: { model, trans } }: { page: Page }): JSX.Element | null {
  const changes = model.timeline.all().slice(0, SHOWN);
  if (changes.length === 0) {
    return null;
  }
  return (
    <section aria-label={trans.__('What happened')}>
      <h3>{trans.__('What happened')}</h3>
      <ol className="jp-PaddleGpu-timeline">
        {changes.map(change => (
          <li key={change.number} className={`jp-mod-${change.state}`}>
            <time dateTime={new Date(change.atMs).toISOString()}>{new Date(change.atMs).toLocaleTimeString()}</time>{' '}
            <b>{baseName(change.label)}</b> {stateWord(trans, change.state)}
            {change.text && <p className="jp-PaddleGpu-detail">{change.text}</p>}
            <Memory text={memorySentence(trans, change.exitCode, change.limitBytes)} />
          </li>
        ))}
      </ol>
    </section>
  );
}

function Memory({ text }: { text: string }): JSX.Element | null {
  return text ? <p>{text}</p> : null;
}
