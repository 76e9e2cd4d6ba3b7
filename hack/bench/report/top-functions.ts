import { isAbsolute, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

/** A CPU profile as V8 writes it (`--cpu-prof`); times are microseconds of the system's monotonic clock. */
export interface CpuProfile {
  nodes: readonly {
    id: number;
    callFrame: { functionName: string; url: string; lineNumber: number };
  }[];
  startTime: number;
  /** Node that was running at each sample. */
  samples: readonly number[];
  /** Time since the sample before, or since the start. */
  timeDeltas: readonly number[];
}

/** A function and the time spent in it, without what it calls. */
export interface FunctionTime {
  name: string;
  /** `file:line`, relative to `root` or to node_modules; empty for what is no JavaScript. */
  place: string;
  selfMicros: number;
}

/**
 * Sums a profile's samples by function, the busiest first. Idle time is left out.
 *
 * @param window microseconds on the clock of the profile; samples outside are left out.
 */
export function topFunctions(
  profile: CpuProfile,
  root: string,
  window: { fromMicros: number; toMicros: number },
): FunctionTime[] {
  const nodes = new Map(profile.nodes.map((node) => [node.id, node.callFrame]));
  const times = new Map<string, FunctionTime>();
  let now = profile.startTime;
  profile.samples.forEach((id, i) => {
    const delta = profile.timeDeltas[i] ?? 0;
    now += delta;
    const frame = nodes.get(id);
    if (frame === undefined || frame.functionName === '(idle)') return;
    if (now < window.fromMicros || now > window.toMicros) return;
    const place = placeOf(frame, root);
    const key = `${frame.functionName} ${place}`;
    const time = times.get(key) ?? { name: frame.functionName || '(anonymous)', place, selfMicros: 0 };
    time.selfMicros += delta;
    times.set(key, time);
  });
  return [...times.values()].sort((a, b) => b.selfMicros - a.selfMicros);
}

function placeOf({ url, lineNumber }: { url: string; lineNumber: number }, root: string): string {
  if (url === '') return '';
  const path = url.startsWith('file:') ? fileURLToPath(url) : url;
  const short = isAbsolute(path) ? relative(root, path).replace(/^.*node_modules\//, '') : path;
  return `${short}:${lineNumber + 1}`;
}
