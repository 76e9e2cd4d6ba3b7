import { closest } from './spelling.ts';
import { maskPath, maskUrl } from './text.ts';

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
} from './setting-builders.ts';

/**
 * JSON Schema of the value, for settings written as YAML or JSON: the charts. Never stricter than
 * `parse`, except for spellings: `true` and `info`, not `T` and `INFO`.
 */
export type SettingSchema = {
  readonly type: 'boolean' | 'integer' | 'number' | 'string';
  readonly enum?: readonly (string | boolean)[];
  readonly minimum?: number;
  readonly maximum?: number;
  /** Pattern of a text. */
  readonly pattern?: string;
};

/** A setting: its variable, meaning and parser. Created by a builder (`text`, `bool`, …). */
export type Setting<T> = {
  readonly env: string;
  readonly aliases: readonly string[];
  readonly group: string;
  /** One sentence for the generated documentation. */
  readonly doc: string;
  /** The value is never printed. */
  readonly secret: boolean;
  /** The value is never printed, or of a URL its origin only, and need not be in a Secret. */
  readonly hidden?: true | 'path';
  /** The expected form, as a noun phrase: `a TCP port, 0 to 65535`. */
  readonly form: string;
  /** The expected form as JSON Schema, as far as it can express it. */
  readonly schema: SettingSchema;
  /** Parses the text, or returns `undefined` when it does not have the form. */
  readonly parse: (text: string) => T | undefined;
  /**
   * The replacement of a value that is out of range, as text; undefined for a valid value. Absent
   * for settings that refuse such values.
   */
  readonly replacement?: (text: string) => string | undefined;
  /** Default when the variable is unset; `undefined` for a required setting. */
  readonly fallback: { readonly value: T; readonly text: string } | undefined;
};

/** The settings of a program, by their names in the code. */
export type SettingsSpec = Readonly<Record<string, Setting<unknown>>>;

/** The values of a spec. */
export type SettingValues<S extends SettingsSpec> = {
  readonly [K in keyof S]: S[K] extends Setting<infer T> ? T : never;
};

/** Environment variables, like `process.env`. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** A problem of the settings: the variable, its value, and the expected form. */
export type SettingProblem = {
  /** The variable, by the name that is set. */
  readonly variable: string;
  /** The value with secrets and credentials hidden; absent when unset. */
  readonly value?: string;
  /** The expected form, as a noun phrase or a sentence. */
  readonly expected: string;
};

/** An unknown variable that resembles a known one. */
export type Misspelling = { readonly variable: string; readonly meant: string };

/**
 * Finds unknown variables that are one or two edits away from a setting of the spec.
 *
 * Short names are close to unrelated variables (`PORT` is two edits from `PATH`), so a variable is
 * reported only when it begins with one of `prefixes` or the known name is long: 8 letters for one
 * edit, 12 for two.
 */
export function findMisspelled(
  spec: SettingsSpec,
  env: Environment,
  prefixes: readonly string[] = [],
): Misspelling[] {
  const known = Object.values(spec).flatMap((setting) => [setting.env, ...setting.aliases]);
  const names = new Set(known);
  return Object.keys(env)
    .filter((variable) => env[variable] !== undefined && !names.has(variable))
    .flatMap((variable) => {
      const ours = prefixes.some((prefix) => variable.startsWith(prefix));
      const meant = closest(variable, known, (name) =>
        ours || name.length >= 12 ? 2 : name.length >= 8 ? 1 : 0,
      );
      return meant === undefined ? [] : [{ variable, meant }];
    });
}

/** Context of a cross-field check. */
type CheckContext<S extends SettingsSpec> = {
  /** The variable of a setting, by the name that is set (the main name when unset). */
  variableName(key: keyof S & string): string;
  /** A problem of a setting, with its value if it is set; secrets and credentials are hidden. */
  problem(key: keyof S & string, expected: string): SettingProblem;
};

/** Checks settings that depend on each other. Skipped when a setting that it reads is invalid. */
export type SettingsCheck<S extends SettingsSpec> = (
  settings: SettingValues<S>,
  context: CheckContext<S>,
) => SettingProblem | undefined;

/** Settings, or all their problems. */
export type ParsedSettings<S extends SettingsSpec> =
  | { readonly ok: true; readonly settings: SettingValues<S> }
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
 * Reads all settings of a spec from the environment, then runs the checks; reports all problems at
 * once. An unset variable has its default; an empty one is parsed like any other text, hence
 * invalid for numbers, booleans and durations. Unknown variables are ignored.
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
    variableName: (key) => reads.get(key)?.variable ?? key,
    problem(key, expected) {
      const { variable = key, shown } = reads.get(key) ?? {};
      return { variable, ...(shown !== undefined && { value: shown }), expected };
    },
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
  const shown = maskValue(setting, raw);
  const value = setting.parse(raw);
  if (value !== undefined) return { ok: true, variable, value, shown };
  return { ok: false, variable, shown, problem: { variable, value: shown, expected: setting.form } };
}

/** The variables of a setting that are set. The first one is in force. */
export function findSet(setting: Setting<unknown>, env: Environment): Found[] {
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
    value: `${maskValue(setting, first.raw)} and ${maskValue(setting, other.raw)}`,
    expected: `the same value in both, or only one of them set: they are two names of one setting`,
  };
}

/** Maximum length of a value in messages. */
const maxShownLength = 100;

/** Whether no part of the value is shown. */
export function isSecret({ secret, hidden }: Setting<unknown>): boolean {
  return secret || hidden === true;
}

function maskValue(setting: Setting<unknown>, raw: string): string {
  if (isSecret(setting) && raw !== '') return '(hidden)';
  const masked = setting.hidden === 'path' ? maskPath(raw) : maskUrl(raw);
  return JSON.stringify(masked.length > maxShownLength ? `${masked.slice(0, maxShownLength)}…` : masked);
}

/** Thrown by the getter of an invalid setting, to skip the checks that read it. */
class UnreadableSetting extends Error {}

function settingsFrom<S extends SettingsSpec>(reads: ReadonlyMap<string, Read>): SettingValues<S> {
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
  // Parsed boundary: each value comes from the parser of its key.
  return Object.freeze(settings) as SettingValues<S>;
}

function runCheck(check: () => SettingProblem | undefined): SettingProblem | undefined {
  try {
    return check();
  } catch (error) {
    if (error instanceof UnreadableSetting) return undefined;
    throw error;
  }
}

/** A value that is out of range, and its replacement. */
export type ReplacedSetting = { readonly variable: string; readonly value: string; readonly used: string };

/** Finds variables whose value is replaced, for one warning each. */
export function findReplaced(spec: SettingsSpec, env: Environment): ReplacedSetting[] {
  return Object.values(spec).flatMap((setting) => {
    const [first] = findSet(setting, env);
    if (first === undefined) return [];
    const used = setting.replacement?.(first.raw);
    return used === undefined ? [] : [{ variable: first.variable, value: first.raw, used }];
  });
}

/** A further column of defaults. Settings without an entry have the same default. */
export interface OtherDefaults {
  readonly title: string;
  /** Values by main variable. */
  readonly values: Readonly<Record<string, string>>;
}

/** Renders a spec as Markdown: a heading and a table per group, in the order of the spec. */
export function renderSettingsTable(spec: SettingsSpec, others?: OtherDefaults): string {
  const groups = Map.groupBy(Object.values(spec), (setting) => setting.group);
  return [...groups].map(([group, settings]) => renderGroup(group, settings, others)).join('\n');
}

function renderGroup(group: string, settings: readonly Setting<unknown>[], others?: OtherDefaults): string {
  const rows = settings.map((setting) => row([...cells(setting, others)]));
  const title = others === undefined ? [] : [others.title];
  const heading = ['Variable', 'Also read as', 'Default', ...title, 'Meaning', 'Form'];
  return [`## ${group}`, '', row(heading), row(heading.map(() => '---')), ...rows, ''].join('\n');
}

function cells(setting: Setting<unknown>, others: OtherDefaults | undefined): readonly string[] {
  const meaning = setting.secret ? `${setting.doc} Secret: never printed.` : setting.doc;
  const other = others?.values[setting.env];
  return [
    code(setting.env),
    setting.aliases.map(code).join(', '),
    defaultCell(setting),
    ...(others === undefined ? [] : [other === undefined ? '' : code(other)]),
    escapeCell(meaning),
    escapeCell(setting.form),
  ];
}

function defaultCell({ fallback, secret }: Setting<unknown>): string {
  if (!fallback) return 'required';
  if (fallback.text === '') return 'empty';
  return secret ? '(hidden)' : code(fallback.text);
}

const row = (columns: readonly string[]): string => `| ${columns.join(' | ')} |`;
const escapeCell = (value: string): string => value.replaceAll('|', '\\|').replaceAll(/\s+/g, ' ');
const code = (value: string): string => `\`${escapeCell(value)}\``;

/** Declares the settings of a program. Throws when two of them have the same variable. */
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

/**
 * Formats problems: a heading, then one line each with the variable, its value and the expected
 * form.
 */
export function formatSettingProblems(problems: readonly SettingProblem[]): string {
  const heading = problems.length === 1 ? '1 setting is wrong:' : `${problems.length} settings are wrong:`;
  const lines = problems.map(({ variable, value, expected }) => {
    return `  ${variable}${value === undefined ? ' is not set' : ` is ${value}`}: expected ${expected}`;
  });
  return [heading, ...lines].join('\n');
}
