/** The last hour of each GPU, in a size that does not grow: a point for ten seconds. */

import type { GpuSample, HostSample, Reading, Row } from '../wire/reading.js';

export const POINT_S = 10;
export const POINTS = 360;
const WINDOWS = [30, 90, POINTS]; // five minutes, fifteen, an hour: a session that has just begun fills its chart soon

/** The mean over one span of time; null where nothing was known. */
export interface Point {
  /** The number of the span since the epoch. */
  span: number;
  utilization: Mean;
  memory: Mean;
}

export class Mean {
  private sum = 0;
  private count = 0;

  add(value: number | null): void {
    if (value !== null) {
      this.sum += value;
      this.count += 1;
    }
  }

  get value(): number | null {
    return this.count === 0 ? null : this.sum / this.count;
  }
}

/** A GPU as a session's agent saw it last; `place` is that among the session's devices. */
export interface Seen {
  session: string;
  place: number;
  gpu: GpuSample;
}

export class History {
  private readonly latest = new Map<string, Reading>();
  private readonly points = new Map<string, Point[]>();
  private newestSpan = 0;

  /** Take an event of the stream; rows that were taken before (a stream begun anew) change nothing. */
  add(rows: readonly Row[]): void {
    for (const { session, reading } of rows) {
      const before = this.latest.get(session);
      if (before === undefined || reading.atS > before.atS) {
        this.latest.set(session, reading);
        this.note(reading);
      }
    }
  }

  /** Forget the sessions that are no more, and GPUs that nobody has seen for an hour. */
  keep(sessions: ReadonlySet<string>): void {
    for (const session of [...this.latest.keys()]) {
      if (!sessions.has(session)) {
        this.latest.delete(session);
      }
    }
    for (const [id, points] of [...this.points]) {
      if ((points.at(-1)?.span ?? 0) <= this.newestSpan - POINTS) {
        this.points.delete(id);
      }
    }
  }

  /** Return the GPUs of all sessions, by their ids: the tenth comes after the ninth. */
  gpus(): Seen[] {
    const seen = [...this.latest].flatMap(([session, reading]) =>
      reading.gpus.map((gpu, place) => ({ session, place, gpu }))
    );
    return seen.sort((a, b) => a.gpu.id.localeCompare(b.gpu.id, undefined, { numeric: true }));
  }

  /** Return the last reading of one session. */
  last(session: string): Reading | undefined {
    return this.latest.get(session);
  }

  /** Return the newest sample of the host, or null before there is one. */
  host(): HostSample | null {
    const readings = [...this.latest.values()].sort((a, b) => b.atS - a.atS);
    return readings[0]?.host ?? null;
  }

  /** Return the points of one GPU, the oldest first, and null for each span that nothing is known of. */
  line(id: string, value: (point: Point) => number | null): (number | null)[] {
    const points = this.points.get(id) ?? [];
    const needed = this.newestSpan + 1 - (points[0]?.span ?? this.newestSpan);
    const length = WINDOWS.find(window => needed <= window) ?? POINTS;
    const bySpan = new Map(points.map(point => [point.span, value(point)]));
    return Array.from({ length }, (_, index) => bySpan.get(this.newestSpan - length + 1 + index) ?? null);
  }

  private note(reading: Reading): void {
    const span = Math.floor(reading.atS / POINT_S);
    this.newestSpan = Math.max(this.newestSpan, span);
    for (const gpu of reading.gpus) {
      if (gpu.stale === null) {
        const point = this.point(gpu.id, span);
        point.utilization.add(gpu.utilizationPercent);
        point.memory.add(memoryPercent(gpu));
      }
    }
  }

  private point(id: string, span: number): Point {
    const points = this.points.get(id) ?? [];
    this.points.set(id, points);
    const last = points.at(-1);
    if (last?.span === span) {
      return last;
    }
    const fresh = { span, utilization: new Mean(), memory: new Mean() };
    points.push(fresh);
    points.splice(0, points.length - POINTS);
    return fresh;
  }
}

/** Return how full a GPU's memory is, or null where that is unknown. */
export function memoryPercent(gpu: GpuSample): number | null {
  const { memoryUsedBytes: used, memoryTotalBytes: total } = gpu;
  return used === null || !total ? null : (100 * used) / total;
}
