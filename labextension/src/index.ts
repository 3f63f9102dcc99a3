/** What JupyterLab 4 and Notebook 7 load. */

import { ILayoutRestorer, type JupyterFrontEnd, type JupyterFrontEndPlugin } from '@jupyterlab/application';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import { Feed } from './api/feed.js';
import { Server } from './api/server.js';
import { Model } from './model/model.js';
import { GpuPanel } from './panel/panel.js';

const panel: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-paddle-gpu:panel',
  description: 'GPU sessions of this server in a sidebar.',
  autoStart: true,
  optional: [ITranslator, ILayoutRestorer],
  activate: (app: JupyterFrontEnd, translator: ITranslator | null, restorer: ILayoutRestorer | null) => {
    const trans = (translator ?? nullTranslator).load('jupyter_paddle_gpu');
    const { serverSettings, events } = app.serviceManager;
    const model = new Model(() => Date.now());
    const feed = new Feed(new Server(serverSettings), model, events);
    const widget = new GpuPanel(model, feed, trans);
    app.shell.add(widget, 'right', { rank: 700, type: 'GPU' });
    restorer?.add(widget, widget.id);
  }
};

export default panel;
