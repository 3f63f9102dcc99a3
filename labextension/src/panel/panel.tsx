/** The sidebar: draws the model while it is shown, and at most once a frame. */

import { ReactWidget } from '@jupyterlab/ui-components';
import React from 'react';
import type { Feed } from '../api/feed.js';
import type { Page } from '../components/page.js';
import { GpuView } from '../components/view.js';
import { counting } from '../model/sessions.js';
import { gpuIcon } from './icon.js';

const TICK_MS = 1000;

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
    return <GpuView page={this.page} />;
  }

  private redraw(): void {
    this.frame ||= window.requestAnimationFrame(() => {
      this.frame = 0;
      this.update();
    });
  }

  private countDown(): void {
    const { model } = this.page;
    if (counting(model.sessions.all(), model.nowMs)) {
      this.redraw();
    }
  }
}
