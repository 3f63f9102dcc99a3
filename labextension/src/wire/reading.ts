/** What an agent saw of its GPUs and its host. Null is unknown, never zero; `unknown` says why. */

import { fields, list, number, text, texts, textsByName } from './decode.js';

export interface GpuSample {
  id: string;
  kind: string;
  name: string;
  takenS: number | null;
  utilizationPercent: number | null;
  memoryUsedBytes: number | null;
  memoryTotalBytes: number | null;
  temperatureC: number | null;
  powerW: number | null;
  clockMhz: number | null;
  throttled: string[];
  eccErrors: number | null;
  processes: number | null;
  unknown: Record<string, string>;
  /** Why the values are older than the reading that shows them. */
  stale: string | null;
  /** Of this session's own processes, and of all others; null where the driver does not tell. */
  memoryOwnBytes: number | null;
  memoryOthersBytes: number | null;
  /** The driver's numbers of faults since the agent began to look. */
  xids: number[];
}

/** What the kernel said of its training; `takenS` is when. */
export interface KernelSample {
  takenS: number | null;
  step: number | null;
  stepsPerS: number | null;
  /** What a save would write, and how long it would take. */
  stateBytes: number | null;
  saveS: number | null;
  /** Where Paddle computes, as it names it ("gpu:0", "cpu"); then its live tensors, what it holds for them, the most. */
  device: string;
  allocatedBytes: number | null;
  reservedBytes: number | null;
  peakBytes: number | null;
}

export interface HostSample {
  cpuPercent: number | null;
  cpuLimitCores: number | null;
  memoryUsedBytes: number | null;
  memoryLimitBytes: number | null;
  unknown: Record<string, string>;
}

export interface Reading {
  atS: number;
  gpus: GpuSample[];
  /** Why no GPU is seen at all. */
  fault: string | null;
  host: HostSample;
  /** Null where the kernel has not told anything. */
  kernel: KernelSample | null;
}

export interface Row {
  session: string;
  reading: Reading;
}

/** Decode one event of the telemetry stream. Throws WireError that names the field. */
export function rowsOf(value: unknown): Row[] {
  return list(value, 'Telemetry', item => {
    const of = fields(item, 'A row');
    return { session: text(of, 'session'), reading: readingOf(of.reading) };
  });
}

function readingOf(value: unknown): Reading {
  const of = fields(value, 'A reading');
  return {
    atS: number(of, 'at_s') ?? 0,
    gpus: list(of.gpus ?? [], 'gpus', gpuOf),
    fault: text(of, 'fault') || null,
    host: hostOf(of.host ?? {}),
    kernel: of.kernel ? kernelOf(of.kernel) : null
  };
}

function gpuOf(value: unknown): GpuSample {
  const of = fields(value, 'A GPU');
  return {
    id: text(of, 'id'),
    kind: text(of, 'kind'),
    name: text(of, 'name'),
    takenS: number(of, 'taken_s'),
    utilizationPercent: number(of, 'utilization_percent'),
    memoryUsedBytes: number(of, 'memory_used_bytes'),
    memoryTotalBytes: number(of, 'memory_total_bytes'),
    temperatureC: number(of, 'temperature_c'),
    powerW: number(of, 'power_w'),
    clockMhz: number(of, 'clock_mhz'),
    throttled: texts(of, 'throttled'),
    eccErrors: number(of, 'ecc_errors'),
    processes: number(of, 'processes'),
    unknown: textsByName(of, 'unknown'),
    stale: text(of, 'stale') || null,
    memoryOwnBytes: number(of, 'memory_own_bytes'),
    memoryOthersBytes: number(of, 'memory_others_bytes'),
    xids: texts(of, 'xids').map(Number)
  };
}

function kernelOf(value: unknown): KernelSample {
  const of = fields(value, "A kernel's word");
  return {
    takenS: number(of, 'taken_s'),
    step: number(of, 'step'),
    stepsPerS: number(of, 'steps_per_s'),
    stateBytes: number(of, 'state_bytes'),
    saveS: number(of, 'save_s'),
    device: text(of, 'device'),
    allocatedBytes: number(of, 'allocated_bytes'),
    reservedBytes: number(of, 'reserved_bytes'),
    peakBytes: number(of, 'peak_bytes')
  };
}

function hostOf(value: unknown): HostSample {
  const of = fields(value, 'A host');
  return {
    cpuPercent: number(of, 'cpu_percent'),
    cpuLimitCores: number(of, 'cpu_limit_cores'),
    memoryUsedBytes: number(of, 'memory_used_bytes'),
    memoryLimitBytes: number(of, 'memory_limit_bytes'),
    unknown: textsByName(of, 'unknown')
  };
}
