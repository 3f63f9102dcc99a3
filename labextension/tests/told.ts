/** JSON as the server sends it. */

export function session(id: string, changes: object = {}): object {
  return {
    id,
    label: `${id}.ipynb`,
    kernel_name: 'paddle-gpu',
    state: 'running',
    request: { gpus: 1, memory_bytes: null, tier: 'notebook', grace_s: 60, every_s: null },
    devices: ['0'],
    device_kind: 'GPU',
    position: null,
    why: '',
    wanted: null,
    detail: '',
    saved: null,
    restored: null,
    exit_code: null,
    log_tail: '',
    ...changes
  };
}

export function gpu(changes: object = {}): object {
  return {
    id: '0',
    kind: 'GPU',
    name: 'A GPU',
    taken_s: 1000,
    utilization_percent: 50,
    memory_used_bytes: 25,
    memory_total_bytes: 100,
    temperature_c: 40,
    power_w: null,
    clock_mhz: null,
    throttled: null,
    ecc_errors: null,
    processes: null,
    unknown: { power_w: 'the driver does not tell' },
    stale: null,
    ...changes
  };
}

export function row(of: string, atS: number, gpus: object[], fault: string | null = null): object {
  return { session: of, reading: { at_s: atS, gpus, fault, host: {} } };
}

export function snapshot(changes: object = {}): object {
  return {
    name: '000003-step-1200',
    path: '/snapshots/000003-step-1200',
    step: 1200,
    nbytes: 1024,
    seconds: 0.4,
    cause: 'manual',
    created_s: 1000,
    inexact: [],
    session: '',
    pinned: false,
    ranks: 1,
    ...changes
  };
}

export function machine(): object {
  const holder = { owner: 'ada', label: 'urgent job', tier: 'urgent', since_s: 1, evicted: false, session: null };
  return {
    noun: 'GPU',
    total: 2,
    free: 1,
    devices: [
      { id: '0', kind: 'GPU', name: '', memory_bytes: null, holder },
      { id: '1', kind: 'GPU', name: '', memory_bytes: null, holder: null }
    ],
    waiting: [
      { position: 1, gpus: 2, tier: 'notebook', owner: 'ada', label: 'a.ipynb', since_s: 1, why: '', session: 'a' }
    ],
    tiers: [
      { name: 'urgent', priority: 10, preempts: true, description: '', now: 1, by_taking: 2 },
      { name: 'notebook', priority: -10, preempts: false, description: '', now: 1, by_taking: 1 }
    ]
  };
}
