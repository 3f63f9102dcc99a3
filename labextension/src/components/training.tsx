/** How far the training is, and whether a save would fit into the grace. */

import React from 'react';
import { bytes, duration } from '../model/format.js';
import type { Reading } from '../wire/reading.js';
import type { Session } from '../wire/session.js';
import type { Page } from './page.js';

const SILENT_S = 10; // a kernel speaks about once a second

export function Training(props: { page: Page; session: Session; reading: Reading | undefined }): JSX.Element | null {
  const { page, session, reading } = props;
  const kernel = reading?.kernel;
  if (!reading || !kernel) {
    return null;
  }
  const { trans } = page;
  const silentS = kernel.takenS === null ? 0 : reading.atS - kernel.takenS;
  return (
    <>
      {kernel.step !== null && (
        <p>
          {trans.__('Step %1', kernel.step)}
          {kernel.stepsPerS !== null && ` · ${trans.__('%1 steps/s', kernel.stepsPerS.toPrecision(2))}`}
        </p>
      )}
      {kernel.stateBytes !== null && kernel.saveS !== null && (
        <p className={kernel.saveS > session.request.graceS ? 'jp-PaddleGpu-warning' : ''}>
          {trans.__(
            'A save takes %1 of %2 (%3)',
            duration(Math.max(1, kernel.saveS)),
            duration(session.request.graceS),
            bytes(kernel.stateBytes)
          )}
        </p>
      )}
      {silentS > SILENT_S && (
        <p className="jp-PaddleGpu-warning">
          {trans.__('The kernel has not spoken for %1: one long call runs in it.', duration(silentS))}
        </p>
      )}
    </>
  );
}
