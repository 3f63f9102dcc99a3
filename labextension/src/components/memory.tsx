/** A GPU's memory as one bar: the session's own, other tenants', and what Paddle keeps for later. */

import type { TranslationBundle } from '@jupyterlab/translation';
import React from 'react';
import { bytes } from '../model/format.js';
import type { Owner, Part } from '../model/memory.js';

interface MemoryProps {
  parts: readonly Part[];
  totalBytes: number;
  trans: TranslationBundle;
}

export function MemoryBar({ parts, totalBytes, trans }: MemoryProps): JSX.Element {
  const told = parts.some(part => part.owner !== 'rest');
  const split = parts.some(part => part.owner === 'tensors' || part.owner === 'pool');
  return (
    <>
      <div className="jp-PaddleGpu-bar" aria-hidden="true">
        {parts.map(({ owner, bytes: size }) => (
          <span key={owner} className={`jp-mod-${owner}`} style={{ width: `${(100 * size) / totalBytes}%` }} />
        ))}
      </div>
      {told && (
        <dl className="jp-PaddleGpu-owners">
          {parts.map(({ owner, bytes: size }) => (
            <div key={owner} className="jp-PaddleGpu-fact">
              <dt className={`jp-mod-${owner}`}>{ownerWord(trans, owner, split)}</dt>
              <dd>{bytes(size)}</dd>
            </div>
          ))}
        </dl>
      )}
    </>
  );
}

/** `split`: what Paddle holds of this notebook's memory is a part of its own. */
function ownerWord(trans: TranslationBundle, owner: Owner, split: boolean): string {
  const words: Record<Owner, string> = {
    tensors: trans.__('Tensors'),
    pool: trans.__('Kept by Paddle'),
    own: split ? trans.__('Rest of this notebook') : trans.__('This notebook'),
    others: trans.__('Other tenants'),
    rest: trans.__('Driver')
  };
  return words[owner];
}
