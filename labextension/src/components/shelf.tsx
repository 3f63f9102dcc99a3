/** The snapshots of a session: how large and how old, to load, to keep, to delete. */

import React from 'react';
import { bytes, duration } from '../model/format.js';
import type { Session } from '../wire/session.js';
import type { Shelf, Snapshot } from '../wire/shelf.js';
import type { Page } from './page.js';
import { Outcome, useWork, type Work, WorkButton } from './work.js';

interface ShelfProps {
  page: Page;
  session: Session;
}

/** Asks for the list when it is opened, and again when the session has saved. */
export function ShelfSection({ page, session }: ShelfProps): JSX.Element {
  const { trans, server } = page;
  const work = useWork();
  const [open, setOpen] = React.useState(false);
  const [shelf, setShelf] = React.useState<Shelf | null>(null);
  const put = (fresh: Shelf): string => {
    setShelf(fresh);
    return '';
  };
  // biome-ignore lint/correctness/useExhaustiveDependencies: a save is what makes the list old
  React.useEffect(() => {
    if (open) {
      work.run(async () => put(await server.snapshots(session.id)));
    }
  }, [open, session.id, session.saved?.path]);
  return (
    <details onToggle={event => setOpen(event.currentTarget.open)}>
      <summary>{trans.__('Snapshots')}</summary>
      {shelf?.snapshots.length === 0 && <p>{trans.__('None yet.')}</p>}
      <ul className="jp-PaddleGpu-shelf" aria-label={trans.__('Snapshots')}>
        {(shelf?.snapshots ?? []).map(snapshot => (
          <SnapshotRow key={snapshot.name} {...{ page, session, snapshot, put, work }} />
        ))}
      </ul>
      {shelf !== null && <p className="jp-PaddleGpu-detail">{takenSentence(shelf, page)}</p>}
      <Outcome work={work} />
    </details>
  );
}

interface RowProps extends ShelfProps {
  snapshot: Snapshot;
  /** Show these from now on; return that there is nothing to say. */
  put(shelf: Shelf): string;
  work: Work;
}

function SnapshotRow({ page, session, snapshot, put, work }: RowProps): JSX.Element {
  const { trans, server, confirm } = page;
  const { name, pinned } = snapshot;
  const title = snapshot.step === null ? name : trans.__('Step %1', snapshot.step);
  const restore = async (): Promise<string> => {
    const body = trans.__('What the notebook has trained since then and not saved is overwritten.');
    const agreed = await confirm(trans.__('Restore “%1”?', title), body, trans.__('Restore'));
    return agreed
      ? [trans.__('%1 is restored.', title), ...(await server.restore(session.id, name)).notes].join(' ')
      : '';
  };
  const pin = async (): Promise<string> => put(await server.pin(session.id, name, !pinned));
  const remove = async (): Promise<string> => {
    const body = trans.__('It cannot be brought back.');
    const agreed = await confirm(trans.__('Delete “%1”?', title), body, trans.__('Delete'));
    return agreed ? put(await server.remove(session.id, name)) : '';
  };
  return (
    <li aria-label={title}>
      <b title={name}>{title}</b> <span>{bytes(snapshot.bytes)}</span>{' '}
      <span className="jp-PaddleGpu-detail">{age(snapshot, page)}</span>
      {pinned && <span className="jp-PaddleGpu-detail"> {trans.__('kept for good')}</span>}
      {snapshot.inexact.length > 0 && (
        <p className="jp-PaddleGpu-detail">{trans.__('Not exact: %1', snapshot.inexact.join('; '))}</p>
      )}
      <div className="jp-PaddleGpu-actions">
        <WorkButton work={work} what={restore} label={trans.__('Restore %1', title)}>
          {trans.__('Restore')}
        </WorkButton>
        <WorkButton work={work} what={pin} label={pinned ? trans.__('Unpin %1', title) : trans.__('Pin %1', title)}>
          {pinned ? trans.__('Unpin') : trans.__('Pin')}
        </WorkButton>
        <WorkButton work={work} what={remove} label={trans.__('Delete %1', title)}>
          {trans.__('Delete')}
        </WorkButton>
      </div>
    </li>
  );
}

function age(snapshot: Snapshot, { model, trans }: Page): string {
  return trans.__('%1 ago', duration(Math.max(0, model.nowMs / 1000 - snapshot.createdS)));
}

function takenSentence(shelf: Shelf, { trans }: Page): string {
  const taken = bytes(shelf.takenBytes);
  const free = shelf.diskFreeBytes === null ? trans.__('unknown') : bytes(shelf.diskFreeBytes);
  return shelf.quotaBytes === null
    ? trans.__('%1 taken, %2 free on the disk', taken, free)
    : trans.__('%1 of %2 taken, %3 free on the disk', taken, bytes(shelf.quotaBytes), free);
}
