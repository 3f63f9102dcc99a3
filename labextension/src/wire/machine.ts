/** The devices of this machine: who holds them, who waits, and what a request would get now. */

import { fields, list, number, text } from './decode.js';

export interface Holder {
  owner: string;
  label: string;
  tier: string;
  sinceS: number | null;
  evicted: boolean;
  /** A session of this server, or null for somebody else's. */
  session: string | null;
}

export interface MachineDevice {
  id: string;
  kind: string;
  name: string;
  memoryBytes: number | null;
  holder: Holder | null;
}

export interface InQueue {
  position: number;
  gpus: number;
  tier: string;
  label: string;
  session: string | null;
}

export interface TierNow {
  name: string;
  description: string;
  /** How many GPUs a request of this tier gets at once, and when lower ones have given way. */
  now: number;
  byTaking: number;
}

export interface Machine {
  total: number;
  free: number;
  devices: MachineDevice[];
  waiting: InQueue[];
  tiers: TierNow[];
}

/** Decode what `GET /paddle-gpu/machine` answers. Throws WireError that names the field. */
export function machineOf(value: unknown): Machine {
  const of = fields(value, 'A machine');
  return {
    total: number(of, 'total') ?? 0,
    free: number(of, 'free') ?? 0,
    devices: list(of.devices, 'devices', deviceOf),
    waiting: list(of.waiting, 'waiting', inQueueOf),
    tiers: list(of.tiers, 'tiers', tierOf)
  };
}

function deviceOf(value: unknown): MachineDevice {
  const of = fields(value, 'A device');
  return {
    id: text(of, 'id'),
    kind: text(of, 'kind'),
    name: text(of, 'name'),
    memoryBytes: number(of, 'memory_bytes'),
    holder: of.holder ? holderOf(of.holder) : null
  };
}

function holderOf(value: unknown): Holder {
  const of = fields(value, 'A holder');
  return {
    owner: text(of, 'owner'),
    label: text(of, 'label'),
    tier: text(of, 'tier'),
    sinceS: number(of, 'since_s'),
    evicted: of.evicted === true,
    session: text(of, 'session') || null
  };
}

function inQueueOf(value: unknown): InQueue {
  const of = fields(value, 'A place in the queue');
  return {
    position: number(of, 'position') ?? 0,
    gpus: number(of, 'gpus') ?? 0,
    tier: text(of, 'tier'),
    label: text(of, 'label'),
    session: text(of, 'session') || null
  };
}

function tierOf(value: unknown): TierNow {
  const of = fields(value, 'A tier');
  return {
    name: text(of, 'name'),
    description: text(of, 'description'),
    now: number(of, 'now') ?? 0,
    byTaking: number(of, 'by_taking') ?? 0
  };
}
