import { maskUrl } from '../mask-url.ts';
import type { Environment, Setting, SettingProblem, SettingsOf, SettingsSpec } from './setting.ts';

/** What a cross-field check may ask besides the values. */
type CheckContext<S extends SettingsSpec> = {
  /** The variable that holds a setting, by the name the operator used (the main name when it is unset). */
  nameOf(key: keyof S & string): string;
  /** The value of a setting as a problem may show it (secrets and credentials hidden); undefined when it is unset. */
  shownOf(key: keyof S & string): string | undefined;
};

/** Looks at settings together; answers a problem or nothing. Skipped when a setting that it reads is itself wrong. */
export type SettingsCheck<S extends SettingsSpec> = (
  settings: SettingsOf<S>,
  context: CheckContext<S>,
) => SettingProblem | undefined;

/** Settings, or everything that is wrong with them. */
export type ParsedSettings<S extends SettingsSpec> =
  | { readonly ok: true; readonly settings: SettingsOf<S> }
  | { readonly ok: false; readonly problems: readonly SettingProblem[] };

type Found = { readonly variable: string; readonly raw: string };
type Read =
  | { readonly ok: true; readonly variable: string; readonly value: unknown; readonly shown?: string }
  | {
      readonly ok: false;
      readonly variable: string;
      readonly problem: SettingProblem;
      readonly shown?: string;
    };

/**
 * Reads all settings of a spec from the environment, then runs the checks; finds all problems at once.
 * An unset variable takes its default; a set but empty one is read like any other text, hence wrong for numbers, booleans and
 * durations. Variables that the spec does not know are ignored.
 */
export function parseSettings<S extends SettingsSpec>(
  spec: S,
  env: Environment,
  options: { readonly checks?: readonly SettingsCheck<NoInfer<S>>[] } = {},
): ParsedSettings<S> {
  const reads = new Map(Object.entries(spec).map(([key, setting]) => [key, readSetting(setting, env)]));
  const problems = [...reads.values()].flatMap((read) => (read.ok ? [] : [read.problem]));
  const settings = settingsFrom<S>(reads);
  const context: CheckContext<S> = {
    nameOf: (key) => reads.get(key)?.variable ?? key,
    shownOf: (key) => reads.get(key)?.shown,
  };
  for (const check of options.checks ?? []) {
    const problem = runCheck(() => check(settings, context));
    if (problem) problems.push(problem);
  }
  return problems.length === 0 ? { ok: true, settings } : { ok: false, problems };
}

function readSetting(setting: Setting<unknown>, env: Environment): Read {
  const [first, ...others] = findSet(setting, env);
  if (!first) return readUnset(setting);
  const conflicting = others.find((other) => other.raw !== first.raw);
  if (conflicting)
    return { ok: false, variable: first.variable, problem: conflictProblem(setting, first, conflicting) };
  const { variable, raw } = first;
  const shown = shownValue(setting, raw);
  const value = setting.parse(raw);
  if (value !== undefined) return { ok: true, variable, value, shown };
  return { ok: false, variable, shown, problem: { variable, value: shown, expected: setting.form } };
}

function findSet(setting: Setting<unknown>, env: Environment): Found[] {
  return [setting.env, ...setting.aliases].flatMap((variable) => {
    const raw = env[variable];
    return raw === undefined ? [] : [{ variable, raw }];
  });
}

function readUnset(setting: Setting<unknown>): Read {
  const variable = setting.env;
  if (setting.fallback) return { ok: true, variable, value: setting.fallback.value };
  return { ok: false, variable, problem: { variable, expected: `${setting.form}; it must be set` } };
}

function conflictProblem(setting: Setting<unknown>, first: Found, other: Found): SettingProblem {
  return {
    variable: `${first.variable} and ${other.variable}`,
    value: `${shownValue(setting, first.raw)} and ${shownValue(setting, other.raw)}`,
    expected: `the same value in both, or only one of them set: they are two names of one setting`,
  };
}

/** Longer values are cut: the message is for eyes. */
const longestShown = 100;

function shownValue(setting: Setting<unknown>, raw: string): string {
  if (setting.secret) return '(hidden)';
  const masked = maskUrl(raw);
  return JSON.stringify(masked.length > longestShown ? `${masked.slice(0, longestShown)}…` : masked);
}

/** Thrown by the getter of a setting that could not be read, so that no check judges by a value that nobody set. */
class UnreadableSetting extends Error {}

function settingsFrom<S extends SettingsSpec>(reads: ReadonlyMap<string, Read>): SettingsOf<S> {
  const settings = Object.create(Object.prototype) as object;
  for (const [key, read] of reads) {
    const holder = read.ok
      ? { value: read.value }
      : {
          get: (): never => {
            throw new UnreadableSetting(key);
          },
        };
    Object.defineProperty(settings, key, { enumerable: true, ...holder });
  }
  // Parsed boundary: each value was made by the parser of its own key, which is what SettingsOf says.
  return Object.freeze(settings) as SettingsOf<S>;
}

function runCheck(check: () => SettingProblem | undefined): SettingProblem | undefined {
  try {
    return check();
  } catch (error) {
    if (error instanceof UnreadableSetting) return undefined;
    throw error;
  }
}
