import type { SettingProblem, SettingsSpec } from './settings/setting.ts';

// The one entry that services import; the parts are files of their own because each is read on its own.
export {
  bool,
  duration,
  float,
  int,
  list,
  longestTimer,
  oneOf,
  pairs,
  port,
  type SettingOptions,
  text,
} from './settings/builders.ts';
export { findMisspelled } from './settings/misspelled.ts';
export {
  type ParsedSettings,
  parseSettings,
  type SettingsCheck,
} from './settings/parse.ts';
export { findReplaced } from './settings/replaced.ts';
export type {
  Environment,
  Setting,
  SettingProblem,
  SettingSchema,
  SettingsOf,
  SettingsSpec,
} from './settings/setting.ts';
export { renderSettingsTable } from './settings/table.ts';

/** Declares the settings of a program. Throws when two of them claim one variable. */
export function defineSettings<const S extends SettingsSpec>(spec: S): S {
  const owners = new Map<string, string>();
  for (const [key, setting] of Object.entries(spec)) {
    for (const variable of [setting.env, ...setting.aliases]) {
      const owner = owners.get(variable);
      if (owner !== undefined)
        throw new TypeError(`variable ${variable} belongs to two settings: ${owner}, ${key}`);
      owners.set(variable, key);
    }
  }
  return Object.freeze(spec);
}

/** Writes problems for an operator: a heading, then one line each with the variable, its value and the expected form. */
export function formatSettingProblems(problems: readonly SettingProblem[]): string {
  const heading = problems.length === 1 ? '1 setting is wrong:' : `${problems.length} settings are wrong:`;
  const lines = problems.map(({ variable, value, expected }) => {
    return `  ${variable}${value === undefined ? ' is not set' : ` is ${value}`}: expected ${expected}`;
  });
  return [heading, ...lines].join('\n');
}
