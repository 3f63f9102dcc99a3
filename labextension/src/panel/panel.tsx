/** The sidebar: draws the model while it is shown, and at most once a frame. */

import type { TranslationBundle } from '@jupyterlab/translation';
import { LabIcon, ReactWidget } from '@jupyterlab/ui-components';
import React from 'react';
import type { Feed } from '../api/feed.js';
import { GpuView } from '../components/view.js';
import type { Model } from '../model/model.js';
import { counting } from '../model/sessions.js';

const TICK_MS = 1000;

export const gpuIcon = new LabIcon({
  name: 'jupyter-paddle-gpu:gpu',
  svgstr: `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24" width="16">
    <path class="jp-icon3 jp-icon-selectable" fill="#616161" fill-rule="evenodd"
      d="M3 5h17a1 1 0 0 1 1 1v10a1 1 0 0 1-1 1h-7v2h-2v-2H9v2H7v-2H5v3H3zm9 2a4 4 0 1 0 0 8 4 4 0 0 0 0-8zm0 2.2a1.8 1.8 0 1 1 0 3.6 1.8 1.8 0 0 1 0-3.600z"/>
  </svg>`
});

export class GpuPanel extends ReactWidget {
  private end: (() => void) | null = null;
  private frame = 0;
  private tick = 0;

  constructor(
    private readonly model: Model,
    private readonly feed: Feed,
    private readonly trans: TranslationBundle
  ) {
    super();
    this.id = 'jupyter-paddle-gpu';
    this.addClass('jp-PaddleGpu');
    this.title.icon = gpuIcon;
    this.title.caption = trans.__('GPU sessions');
    this.node.setAttribute('role', 'region');
    this.node.setAttribute('aria-label', trans.__('GPU sessions'));
  }

  protected override onAfterShow(): void {
    const unwatch = this.feed.watch();
    const unlisten = this.model.changed.add(() => this.redraw());
    this.tick = window.setInterval(() => this.countDown(), TICK_MS);
    this.end = () => {
      unwatch();
      unlisten();
      window.clearInterval(this.tick);
      window.cancelAnimationFrame(this.frame);
      this.frame = 0;
    };
    this.update();
  }

  protected override onAfterHide(): void {
    this.end?.();
    this.end = null;
  }

  override dispose(): void {
    this.onAfterHide();
    super.dispose();
  }

  protected override render(): JSX.Element {
    return <GpuView model={this.model} trans={this.trans} />;
  }

  private redraw(): void {
    this.frame ||= window.requestAnimationFrame(() => {
      this.frame = 0;
      this.update();
    });
  }

  private countDown(): void {
    if (counting(this.model.sessions.all(), this.model.nowMs)) {
      this.redraw();
    }
  }
}
