/** What every component needs: the model, words, the server, and a question to the user. */

import type { TranslationBundle } from '@jupyterlab/translation';
import type { Server } from '../api/server.js';
import type { Model } from '../model/model.js';

/** The notebook or console in front, with its kernel. */
export interface Current {
  kernel: string;
  name: string;
}

export interface Page {
  model: Model;
  trans: TranslationBundle;
  server: Server;
  /** Ask before what cannot be undone; `button` is the word that agrees. */
  confirm(title: string, body: string, button: string): Promise<boolean>;
  current(): Current | null;
}
