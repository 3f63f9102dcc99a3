/** The item in the status bar: how the notebook in front stands, in a few words. */

import { ReactWidget } from '@jupyterlab/ui-components';
import React from 'react';
import type { Page } from '../components/page.js';
import { holds, stateWord } from '../components/words.js';
import { counting, remainingS } from '../model/sessions.js';
import { gpuIcon } from './icon.js';

const TICK_MS = 1000;

export class StatusItem extends ReactWidget {
  constructor(
    private readonly page: Page,
    private readonly look: () => void
  ) {
    super();
    this.addClass('jp-PaddleGpu-status');
    const { model } = page;
    model.changed.add(() => this.update());
    window.setInterval(() => counting(model.sessions.all(), model.nowMs) && this.update(), TICK_MS);
  }

  protected override render(): JSX.Element | null {
    const text = this.words();
    return (
      <button type="button" onClick={this.look} title={this.page.trans.__('Show GPU sessions')}>
        <gpuIcon.react tag="span" width="14px" />
        <span>{text}</span>
      </button>
    );
  }

  private words(): string {
    const { model, trans, current } = this.page;
    const session = model.sessions.get(current()?.kernel ?? '');
    if (session === undefined) {
      return trans._n('%1 session', '%1 sessions', model.sessions.all().length);
    }
    const leftS = remainingS(session, model.nowMs);
    const state = stateWord(trans, session.state);
    return leftS === null ? `${holds(trans, session)} · ${state}` : `${state} · ${Math.ceil(leftS)} s`;
  }
}
