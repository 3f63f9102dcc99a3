/** The sidebar: draws the model while it is shown, at a change and once a second. */

import { ReactWidget } from '@jupyterlab/ui-components';
import React from 'react';
import type { Feed } from '../api/feed.js';
import type { Page } from '../components/page.js';
import { GpuView } from '../components/view.js';
import { gpuIcon } from './icon.js';

const TICK_MS = 1000; // for telemetry, ages and countdowns; a hidden page has no frames to draw in

export class GpuPanel extends ReactWidget {
  private end: (() => void) | null = null;
  private frame = 0;
  private tick = 0;

  constructor(
    private readonly page: Page,
    private readonly feed: Feed
  ) {
    super();
    const { trans } = page;
    this.id = 'jupyter-paddle-gpu';
    this.addClass('jp-PaddleGpu');
    this.title.icon = gpuIcon;
    this.title.caption = trans.__('GPU sessions');
    this.node.setAttribute('role', 'region');
    this.node.setAttribute('aria-label', trans.__('GPU sessions'));
  }

  protected override onAfterShow(): void {
    const unwatch = this.feed.watch();
    const unlisten = this.page.model.changed.add(() => this.redraw());
    this.tick = window.setInterval(() => this.redraw(), TICK_MS);
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
    return <GpuView page={this.page} />;
  }

  private redraw(): void {
    this.frame ||= window.requestAnimationFrame(() => {
      this.frame = 0;
      this.update();
    });
  }
}
