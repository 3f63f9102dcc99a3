/** The snapshots of one notebook. */

import { type Fields, fields, list, number, text, texts } from './decode.js';

export interface Snapshot {
  name: string;
  step: number | null;
  bytes: number;
  cause: string;
  createdS: number;
  /** What would not come back exactly, one text each. */
  inexact: string[];
  pinned: boolean;
}

export interface Shelf {
  takenBytes: number;
  quotaBytes: number | null;
  diskFreeBytes: number | null;
  /** The newest first. */
  snapshots: Snapshot[];
}

export interface Restored {
  snapshot: Snapshot;
  notes: string[];
}

/** Decode a list of snapshots. Throws WireError that names the field. */
export function shelfOf(value: unknown): Shelf {
  const of = fields(value, 'Snapshots');
  return {
    takenBytes: number(of, 'taken_bytes') ?? 0,
    quotaBytes: number(of, 'quota_bytes'),
    diskFreeBytes: number(of, 'disk_free_bytes'),
    snapshots: list(of.snapshots, 'snapshots', snapshotOf)
  };
}

/** Decode the answer to a restore. Throws WireError that names the field. */
export function restoredOf(value: unknown): Restored {
  const of = fields(value, 'A restore');
  return { snapshot: snapshotOf(of.snapshot), notes: texts(of, 'notes') };
}

function snapshotOf(value: unknown): Snapshot {
  const of: Fields = fields(value, 'A snapshot');
  return {
    name: text(of, 'name'),
    step: number(of, 'step'),
    bytes: number(of, 'nbytes') ?? 0,
    cause: text(of, 'cause'),
    createdS: number(of, 'created_s') ?? 0,
    inexact: texts(of, 'inexact'),
    pinned: of.pinned === true
  };
}
