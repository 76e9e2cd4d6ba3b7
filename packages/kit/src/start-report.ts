import { hostname } from 'node:os';
import { isDeepStrictEqual } from 'node:util';
import { flag, list, object, type Schema, text, time } from './json-schema.ts';
import type { LifecycleComponent } from './lifecycle.ts';
import { type Environment, findSet, isSecret, type Setting, type SettingsSpec } from './settings.ts';
import { maskPath, maskUrl } from './text.ts';

/** The value of a setting that another setting implies, such as a mode. */
export interface ImpliedValue {
  readonly value: string;
  /** The other setting: `SVC_MODE=development`. */
  readonly by: string;
  /** The value applies even if another one is set. Default: it is a default. */
  readonly isForced?: true;
}

/** Where the values of settings come from. */
export interface SettingSources {
  /** All variables that are set, in the environment and in files. */
  readonly env: Environment;
  /** Paths of files by variable, for variables that are not from the environment. */
  readonly files?: ReadonlyMap<string, string>;
  /** The values by main variable. */
  readonly implied?: ReadonlyMap<string, ImpliedValue>;
}

/** A setting as it is in force. Secrets have no `value` and no `default`. */
interface EffectiveSetting {
  readonly name: string;
  readonly group: string;
  readonly description: string;
  readonly form: string;
  readonly secret: boolean;
  readonly set: boolean;
  readonly changed: boolean;
  readonly value?: string;
  readonly default?: string;
  readonly source: 'default' | 'environment' | 'file';
  readonly variable?: string;
  readonly from?: string;
}

/** A warning or an error in the log of the start. */
interface StartWarning {
  readonly level: 'warning' | 'error';
  readonly message: string;
  readonly details: Readonly<Record<string, string>>;
}

/** The settings of a running service, and the warnings of its start. */
export interface ServiceSettings {
  readonly service: string;
  readonly version: string;
  readonly replica: string;
  /** RFC 3339. */
  readonly started: string;
  readonly warnings: readonly StartWarning[];
  readonly settings: readonly EffectiveSetting[];
}

/** The JSON Schema of {@link ServiceSettings}, the same in the admin APIs of all services. */
export const serviceSettingsSchema: Schema = object({
  service: { ...text, examples: ['xds'] },
  version: { ...text, examples: ['0.1.0'] },
  replica: { ...text, description: 'Host name of the replica.', examples: ['tollgate-xds-6c8d7f9b5-4k2lm'] },
  started: { ...time, description: 'When the process started.' },
  warnings: {
    ...list(
      object({
        level: { enum: ['warning', 'error'] },
        message: { ...text, examples: ['unknown setting, possibly misspelled'] },
        details: {
          type: 'object',
          additionalProperties: text,
          examples: [{ variable: 'DEBUG_PROT', meant: 'DEBUG_PORT' }],
        },
      }),
    ),
    description: 'Warnings and errors in the log of the start, at most 100.',
  },
  settings: list(
    object(
      {
        name: { ...text, description: 'The main variable.', examples: ['DEBUG_PORT'] },
        group: { ...text, examples: ['Server'] },
        description: { ...text, examples: ['TCP port of the debug server.'] },
        form: { ...text, description: 'The form of values.', examples: ['a TCP port, 0 to 65535'] },
        secret: {
          ...flag,
          description: 'The value may be a credential: there is no `value` and no `default`.',
          examples: [false],
        },
        set: { ...flag, description: 'Whether a value that is not empty is set.' },
        changed: { ...flag, description: 'Whether the value is another one than the default.' },
        value: {
          ...text,
          description: 'The value in force. Passwords in URLs are hidden.',
          examples: ['6071'],
        },
        default: { ...text, description: 'Absent: the setting is required.', examples: ['6070'] },
        source: { enum: ['default', 'environment', 'file'], examples: ['environment'] },
        variable: { ...text, description: 'The name that is set.', examples: ['DEBUG_PORT'] },
        from: {
          ...text,
          description: 'Path of the file, or the setting that the default depends on.',
          examples: ['/etc/tollgate/server.env'],
        },
      },
      { optional: ['value', 'default', 'variable', 'from'] },
    ),
  ),
});

interface StartReportOptions {
  readonly service: string;
  readonly version: string;
  /** Default: the host name. */
  readonly replica?: string;
  readonly spec: SettingsSpec;
  readonly sources: SettingSources;
  /** Unix time in milliseconds of the start. Default: now. */
  readonly startedMs?: number;
}

/** More than a start has; a component that retries could log the same line for hours. */
const maxWarnings = 100;

/**
 * Reports the settings of a service and the warnings of its start. Add it to the lifecycle as the
 * last component: it reads the log until then.
 */
export class StartReport implements LifecycleComponent {
  readonly name = 'start report';
  readonly #options: StartReportOptions;
  readonly #started: string;
  readonly #warnings: StartWarning[] = [];
  readonly #masks: readonly Mask[];
  #isStarting = true;

  constructor(options: StartReportOptions) {
    this.#options = options;
    this.#masks = findMasks(options);
    this.#started = new Date(options.startedMs ?? Date.now()).toISOString();
  }

  /**
   * The `mask` of a logger: hides credentials in URLs of settings as the settings in force do.
   */
  readonly maskLine = (line: string): string =>
    this.#masks.reduce((masked, { text, shown }) => masked.replaceAll(text, () => shown), line);

  /** Reads a line of the log in the JSON format. */
  readonly readLine = (line: string): void => {
    if (!this.#isStarting || this.#warnings.length >= maxWarnings) return;
    // The logger puts the level first.
    if (/^\{"level":"(?:warning|error)"/.test(line)) this.#warnings.push(toWarning(line));
  };

  start(): void {
    this.#isStarting = false;
  }

  get(): ServiceSettings {
    const { service, version, replica, spec, sources } = this.#options;
    return {
      ...{ service, version, replica: replica || hostname(), started: this.#started },
      warnings: this.#warnings,
      settings: Object.values(spec).map((setting) => describeSetting(setting, sources)),
    };
  }
}

function toWarning(line: string): StartWarning {
  // Parsed boundary: the line was written by the logger, as one object.
  const fields = JSON.parse(line) as Readonly<Record<string, unknown>>;
  const { level, '@message': message = '', '@timestamp': _time, ...details } = fields;
  return {
    level: level === 'error' ? 'error' : 'warning',
    message: String(message),
    details: Object.fromEntries(Object.entries(details).map(([name, value]) => [name, toText(value)])),
  };
}

/** Errors without their stacks. */
function toText(value: unknown): string {
  if (typeof value === 'string') return maskUrl(value);
  const isError = typeof value === 'object' && value !== null && 'message' in value;
  return maskUrl(isError ? String(value.message) : JSON.stringify(value));
}

function describeSetting(setting: Setting<unknown>, sources: SettingSources): EffectiveSetting {
  const { env: name, group, doc: description, form } = setting;
  const secret = isSecret(setting);
  const { files } = sources;
  const implied = sources.implied?.get(name);
  const given = findGiven(setting, sources);
  const byDefault = implied?.value ?? setting.fallback?.text;
  const isChanged = given !== undefined && !isDefault(setting, given.raw, implied);
  const value = isChanged ? (setting.replacement?.(given.raw) ?? given.raw) : byDefault;
  const file = given && files?.get(given.variable);
  const from = given === undefined ? implied?.by : file;
  return {
    ...{ name, group, description, form, secret },
    set: (given?.raw ?? implied?.value ?? '') !== '',
    changed: isChanged,
    ...(!secret && value !== undefined && { value: maskValue(value, setting) }),
    ...(!secret && byDefault !== undefined && { default: maskValue(byDefault, setting) }),
    source: given === undefined ? 'default' : file === undefined ? 'environment' : 'file',
    ...(given && { variable: given.variable }),
    ...(from !== undefined && { from }),
  };
}

/** The variable of a setting that is in force, and its text. */
function findGiven(setting: Setting<unknown>, { env, implied }: SettingSources) {
  const value = implied?.get(setting.env);
  if (value?.isForced) return undefined;
  // An implied default replaces empty values, too.
  return findSet(setting, env).find(({ raw }) => raw !== '' || value === undefined);
}

/** Compares values: `1h` and `60m` are equal. */
function isDefault({ parse, fallback }: Setting<unknown>, raw: string, implied?: ImpliedValue): boolean {
  if (implied !== undefined) return isDeepStrictEqual(parse(raw), parse(implied.value));
  return fallback !== undefined && isDeepStrictEqual(parse(raw), fallback.value);
}

/** More is no value that a person reads. */
const maxValueLength = 4_096;

function maskValue(value: string, setting: Pick<Setting<unknown>, 'hidden'>): string {
  const shown = maskCredentials(value, setting);
  return shown.length > maxValueLength ? `${shown.slice(0, maxValueLength)}…` : shown;
}

/** Hides credentials in URLs, also those in queries. */
function maskCredentials(value: string, { hidden }: Pick<Setting<unknown>, 'hidden'>): string {
  if (hidden === 'path') return maskPath(value);
  const masked = maskUrl(value);
  return value.includes('://') ? masked.replaceAll(/([?&][^=&#\s]{1,100}=)[^&#\s]+/g, '$1***') : masked;
}

/** A URL with credentials, and how it is shown, both as JSON has them. */
interface Mask {
  readonly text: string;
  readonly shown: string;
}

/** The masks of all settings, the longest first: one URL may begin with another. */
function findMasks({ spec, sources }: Pick<StartReportOptions, 'spec' | 'sources'>): readonly Mask[] {
  return Object.values(spec)
    .filter((setting) => !isSecret(setting))
    .flatMap((setting) =>
      findSet(setting, sources.env).flatMap(({ raw }) =>
        writeForms(raw.trim()).map((text) => ({ text, shown: maskCredentials(text, setting) })),
      ),
    )
    .filter(({ text, shown }) => text !== shown && shown !== '***')
    .map(({ text, shown }) => ({ text: toJsonText(text), shown: toJsonText(shown) }))
    .toSorted((a, b) => b.text.length - a.text.length);
}

/** How errors and fields of the log write a URL: errors are logged without its user. */
function writeForms(url: string): string[] {
  const forms = [url, URL.parse(url)?.href ?? url];
  return [...new Set(forms.flatMap((form) => [form, maskUrl(form)]))];
}

function toJsonText(text: string): string {
  return JSON.stringify(text).slice(1, -1);
}
