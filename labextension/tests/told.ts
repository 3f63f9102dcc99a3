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
    step: null,
    snapshot: null,
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
