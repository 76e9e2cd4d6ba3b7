import type { StatsSinkKind } from './stats-sinks.ts';

/** The settings that say where statistics go. */
export interface SinkSwitches {
  /** `USE_PUSHSTATS`, true unless set. */
  readonly pushStats: boolean;
  /** `USE_TAGSTATSD`. */
  readonly taggedPush: boolean;
  /** `USE_PULLMETRICS`. */
  readonly pull: boolean;
  /** `DISABLE_STATS`. */
  readonly disabled: boolean;
}

/** A switch that chooses a sink. */
type SinkSwitch = Exclude<keyof SinkSwitches, 'disabled'>;

/** Which sink the settings ask for, undefined for none at all; or which switch is to be turned off, and why. */
export type SinkChoice =
  | { readonly ok: true; readonly sink: StatsSinkKind | undefined }
  | { readonly ok: false; readonly turnOff: SinkSwitch; readonly because: SinkSwitch | 'not served' };

/**
 * Chooses the one sink. `DISABLE_STATS` wins over all; nothing chosen means standard output. `USE_PUSHSTATS` is true
 * unless it is set, so the other two need it set to false, as in the original.
 */
export function chooseSink({ disabled, pushStats, taggedPush, pull }: SinkSwitches): SinkChoice {
  if (disabled) return { ok: true, sink: undefined };
  const on = Object.entries({ pushStats, taggedPush, pull }).flatMap(([name, chosen]) =>
    // Object.entries forgets which names there were.
    chosen ? [name as SinkSwitch] : [],
  );
  const [first, second] = on;
  if (first !== undefined && second !== undefined) return { ok: false, turnOff: first, because: second };
  if (first === 'taggedPush') return { ok: false, turnOff: first, because: 'not served' };
  if (first === undefined) return { ok: true, sink: 'log' };
  return { ok: true, sink: first === 'pull' ? 'pull' : 'statsd' };
}
