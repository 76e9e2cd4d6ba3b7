import type { StatsSinkKind } from './stats-sinks.ts';

/** The settings that say where statistics go; undefined means not set. */
export interface SinkSwitches {
  /** `USE_PUSHSTATS`, default true. */
  readonly pushStats: boolean | undefined;
  /** `USE_TAGSTATSD`. */
  readonly taggedPush: boolean;
  /** `USE_PULLMETRICS`. */
  readonly pull: boolean;
  /** `DISABLE_STATS`. */
  readonly disabled: boolean;
}

/** Which sink the settings ask for; undefined is none at all. Or which settings are at fault, and what to do. */
export type SinkChoice =
  | { readonly ok: true; readonly sink: StatsSinkKind | undefined }
  | { readonly ok: false; readonly settings: readonly string[]; readonly problem: string };

/**
 * Chooses the one sink. `DISABLE_STATS` wins over all; nothing chosen means standard output. `USE_PUSHSTATS` is true
 * unless it is set, so the other two need it set to false, as in the original.
 */
export function chooseSink({ pushStats, taggedPush, pull, disabled }: SinkSwitches): SinkChoice {
  if (disabled) return { ok: true, sink: undefined };
  const chosen = { USE_PUSHSTATS: pushStats ?? true, USE_TAGSTATSD: taggedPush, USE_PULLMETRICS: pull };
  const settings = Object.entries(chosen).flatMap(([setting, on]) => (on ? [setting] : []));
  if (settings.length > 1) {
    return { ok: false, settings, problem: conflictText(settings, pushStats === undefined) };
  }
  if (taggedPush) return { ok: false, settings, problem: taggedPushText };
  if (pull) return { ok: true, sink: 'pull' };
  return { ok: true, sink: chosen.USE_PUSHSTATS ? 'statsd' : 'log' };
}

const taggedPushText =
  'USE_TAGSTATSD is not served by this version: set USE_TAGSTATSD=false, with USE_PUSHSTATS=true for tags within names';

function conflictText(settings: readonly string[], pushByDefault: boolean): string {
  const together = `at most one of USE_PUSHSTATS, USE_TAGSTATSD and USE_PULLMETRICS may be true, but ${settings.join(' and ')} are`;
  const [first, ...others] = settings;
  if (first !== 'USE_PUSHSTATS') return `${together}: set USE_TAGSTATSD=false or USE_PULLMETRICS=false`;
  const why = pushByDefault ? ' (USE_PUSHSTATS is true unless set)' : '';
  const alsoOne = others.length > 1 ? ` and ${others.join('=false or ')}=false` : '';
  return `${together}${why}: set USE_PUSHSTATS=false${alsoOne}`;
}
