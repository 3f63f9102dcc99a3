/** A request that a button has begun: once at a time, and its fault is said where it was begun. */

import React from 'react';
import { ServerError } from '../api/server.js';

export interface Work {
  busy: boolean;
  fault: string;
  /** What is said of the last one that went well. */
  note: string;
  /** Run one; `what` returns a sentence for the user, or an empty one. */
  run(what: () => Promise<string>): void;
}

export function useWork(): Work {
  const [state, setState] = React.useState({ busy: false, fault: '', note: '' });
  const run = (what: () => Promise<string>): void => {
    setState({ busy: true, fault: '', note: '' });
    what().then(
      note => setState({ busy: false, fault: '', note }),
      error => setState({ busy: false, fault: sentenceOf(error), note: '' })
    );
  };
  return { ...state, run };
}

/** Return a fault with its next step. */
export function sentenceOf(error: unknown): string {
  if (error instanceof ServerError && error.nextStep) {
    return `${error.message}. ${error.nextStep}`;
  }
  return error instanceof Error ? error.message : String(error);
}

export function Outcome({ work }: { work: Work }): JSX.Element {
  return (
    <>
      {work.fault && (
        <p className="jp-PaddleGpu-warning" role="alert">
          {work.fault}
        </p>
      )}
      {work.note && <p role="status">{work.note}</p>}
    </>
  );
}

interface ButtonProps {
  work: Work;
  what: () => Promise<string>;
  /** What a screen reader says, where the word alone does not say of what. */
  label?: string;
  children: string;
}

export function WorkButton({ work, what, label, children }: ButtonProps): JSX.Element {
  return (
    <button
      type="button"
      className="jp-PaddleGpu-button"
      disabled={work.busy}
      aria-label={label ?? children}
      onClick={() => work.run(what)}
    >
      {children}
    </button>
  );
}
