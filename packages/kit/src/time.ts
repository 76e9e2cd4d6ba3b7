import { setTimeout as delay, setImmediate as nextTurn } from 'node:timers/promises';

/** Maximum delay of a timer: Node fires longer ones at once. */
export const maxTimerMs = 2 ** 31 - 1;

/** Milliseconds of a monotonic clock. */
export const monotonicNow = (): number => performance.now();

/** Starts a timer; the function it returns cancels it. Tests pass timers of their own. */
export type Schedule = (delayMs: number, run: () => void) => () => void;

/** Timers of the process, which do not keep it alive. */
export const scheduleByTimer: Schedule = (delayMs, run) => {
  const timer = setTimeout(run, delayMs);
  timer.unref();
  return () => clearTimeout(timer);
};

/**
 * Calls `late` after that time, unless the returned function is called before. Drains the sockets
 * first: after a pause of the process, for lack of CPU or garbage collection, timers fire before
 * responses that have arrived are read.
 */
export function startDeadline(timeoutMs: number, late: () => void): () => void {
  let afterReading: NodeJS.Immediate | undefined;
  const timer = setTimeout(() => {
    afterReading = setImmediate(late);
  }, timeoutMs);
  return () => {
    clearTimeout(timer);
    clearImmediate(afterReading);
  };
}

/**
 * Settles as the promise does, or rejects with the error of `late` after that time; the promise is
 * ignored then.
 */
export async function inTime<T>(promise: Promise<T>, timeoutMs: number, late: () => Error): Promise<T> {
  const timeout = Promise.withResolvers<never>();
  const clear = startDeadline(timeoutMs, () => timeout.reject(late()));
  try {
    return await Promise.race([promise, timeout.promise]);
  } finally {
    clear();
  }
}

/** Resolves after that time; rejects with the signal's reason once that aborts. */
export async function sleepFor(
  ms: number,
  { signal }: { readonly signal?: AbortSignal } = {},
): Promise<void> {
  try {
    await delay(ms, undefined, { ...(signal && { signal }) });
  } catch (error) {
    // Node wraps the reason in an AbortError of its own.
    signal?.throwIfAborted();
    throw error;
  }
}

/** A duration in milliseconds; may have a fraction. */
export type Millis = number;

const nanosPerUnit: Readonly<Record<string, bigint>> = {
  ns: 1n,
  us: 1_000n,
  µs: 1_000n,
  μs: 1_000n,
  ms: 1_000_000n,
  s: 1_000_000_000n,
  m: 60_000_000_000n,
  h: 3_600_000_000_000n,
};
const nanosPerMilli = 1_000_000n;
const longestNanos = 2n ** 63n - 1n;
/** Maximum length of a duration; protects against huge BigInts. */
const longestText = 64;

const wholeForm = /^([+-]?)((?:(?:\d+\.?\d*|\.\d+)(?:ns|us|µs|μs|ms|s|m|h))+)$/;
/**
 * A regular expression for the input of `parseDuration`, for JSON Schema: valid in ECMAScript and
 * RE2.
 */
export const durationPattern = '^[+-]?(0|(([0-9]+[.]?[0-9]*|[.][0-9]+)(ns|us|µs|μs|ms|s|m|h))+)$';
const partForm = /(\d*)\.?(\d*)(ns|us|µs|μs|ms|s|m|h)/g;

/**
 * Reads a duration in Go's syntax: `1h30m`, `1.5s`, `10ms`, `2us`, `2µs`, `-1s`, `0`.
 *
 * Each number needs a unit, except a bare `0`. Returns milliseconds (exact to the nanosecond before
 * the conversion), or `undefined` when the text is not a duration or exceeds 64 bits of
 * nanoseconds.
 */
export function parseDuration(text: string): Millis | undefined {
  if (text.length > longestText) return undefined;
  if (/^[+-]?0$/.test(text)) return 0;
  const whole = wholeForm.exec(text);
  if (!whole) return undefined;
  let nanos = 0n;
  for (const [, digits = '', fraction = '', unit = ''] of (whole[2] ?? '').matchAll(partForm)) {
    const scale = nanosPerUnit[unit];
    if (scale === undefined) return undefined;
    nanos +=
      BigInt(digits || '0') * scale + (BigInt(fraction || '0') * scale) / 10n ** BigInt(fraction.length);
  }
  if (nanos > longestNanos) return undefined;
  const ms = Number(nanos / nanosPerMilli) + Number(nanos % nanosPerMilli) / Number(nanosPerMilli);
  return whole[1] === '-' ? -ms : ms;
}

/**
 * Formats milliseconds as the shortest text that `parseDuration` reads back: `24h`, `1h30m`,
 * `1.5s`, `10ms`, `2µs`, `0s`.
 */
export function formatDuration(ms: Millis): string {
  const nanos = BigInt(Math.round(Math.abs(ms) * 1e6));
  if (nanos === 0n) return '0s';
  return (ms < 0 ? '-' : '') + (nanos < 1_000_000_000n ? formatBelowSecond(nanos) : formatClock(nanos));
}

function formatBelowSecond(nanos: bigint): string {
  if (nanos < 1_000n) return `${nanos}ns`;
  return nanos < nanosPerMilli ? `${Number(nanos) / 1e3}µs` : `${Number(nanos) / 1e6}ms`;
}

function formatClock(nanos: bigint): string {
  const perHour = 3_600_000_000_000n;
  const perMinute = 60_000_000_000n;
  const hours = nanos / perHour;
  const minutes = (nanos % perHour) / perMinute;
  const seconds = Number(nanos % perMinute) / 1e9;
  return `${hours > 0n ? `${hours}h` : ''}${minutes > 0n ? `${minutes}m` : ''}${seconds > 0 ? `${seconds}s` : ''}`;
}

/**
 * Reads a time in RFC 3339 format; undefined for any other text.
 *
 * @see RFC 3339 §5.6 https://www.rfc-editor.org/rfc/rfc3339#section-5.6
 */
export function parseInstant(text: string): Date | undefined {
  if (!/^\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(?:\.\d+)?(?:[Zz]|[+-]\d\d:\d\d)$/.test(text)) return undefined;
  const ms = Date.parse(text);
  return Number.isNaN(ms) ? undefined : new Date(ms);
}

/**
 * Work that may be interrupted wherever it yields. The caller decides how long it runs at a time.
 */
export type Steps<T> = Generator<undefined, T, undefined>;

/** Runs work to its end without a break. */
export function runSteps<T>(steps: Steps<T>): T {
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
  }
}

interface SliceOptions {
  readonly sliceMs: number;
  readonly nowMs?: (() => number) | undefined;
}

/** Slices of time for long work, between which the event loop serves what has arrived. */
export class TimeSlices {
  readonly #sliceMs: number;
  readonly #nowMs: () => number;
  #endMs: number;

  /** Begins the first slice. */
  constructor({ sliceMs, nowMs = monotonicNow }: SliceOptions) {
    this.#sliceMs = sliceMs;
    this.#nowMs = nowMs;
    this.#endMs = nowMs() + sliceMs;
  }

  /** The work should wait for `next`. */
  get isOver(): boolean {
    return this.#nowMs() >= this.#endMs;
  }

  /** Resolves when the next slice begins. */
  async next(): Promise<void> {
    await nextTurn();
    this.#endMs = this.#nowMs() + this.#sliceMs;
  }
}

/**
 * Runs work in slices of `sliceMs`. Work that fits into one slice completes without a break.
 */
export async function runInSlices<T>(steps: Steps<T>, options: SliceOptions): Promise<T> {
  const slices = new TimeSlices(options);
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
    if (slices.isOver) await slices.next();
  }
}
