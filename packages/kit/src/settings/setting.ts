/**
 * The value as JSON Schema describes it, for those who write settings as YAML or JSON and not as text: charts. It is never
 * stricter than `parse` on the text of such a value, but for spellings: `true` and `info`, not `T` and `INFO`.
 */
export type SettingSchema = {
  readonly type: 'boolean' | 'integer' | 'number' | 'string';
  readonly enum?: readonly (string | boolean)[];
  readonly minimum?: number;
  readonly maximum?: number;
  /** Of text. */
  readonly pattern?: string;
};

/** One setting: where it comes from, what it means, and how its text is read. Made by a builder (`text`, `bool`, …). */
export type Setting<T> = {
  readonly env: string;
  readonly aliases: readonly string[];
  readonly group: string;
  /** What the setting does, one sentence, for the generated documentation. */
  readonly doc: string;
  /** The value is never printed. */
  readonly secret: boolean;
  /** What an operator may write, as a noun phrase: `a TCP port, 0 to 65535`. */
  readonly form: string;
  /** The same for programs; what is not said here is found out by `parse`. */
  readonly schema: SettingSchema;
  /** Reads the text as set, or answers `undefined` when it has not the form. */
  readonly parse: (text: string) => T | undefined;
  /**
   * What is used in place of a value that is out of range, as text; undefined for a value that is used as it is. Absent for
   * settings that refuse such values.
   */
  readonly replacement?: (text: string) => string | undefined;
  /** What holds when the variable is unset; `undefined` for a setting that must be set. */
  readonly fallback: { readonly value: T; readonly text: string } | undefined;
};

/** The settings of a program by the names its code uses. */
export type SettingsSpec = Readonly<Record<string, Setting<unknown>>>;

/** The frozen values that a spec parses to. */
export type SettingsOf<S extends SettingsSpec> = {
  readonly [K in keyof S]: S[K] extends Setting<infer T> ? T : never;
};

/** Environment variables by name, like `process.env`. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** Why the settings cannot be used: which variable, what it holds, and what it should hold. */
export type SettingProblem = {
  /** The variable, by the name the operator used. */
  readonly variable: string;
  /** The value as it may be shown (secrets and credentials hidden); absent when nothing is set. */
  readonly value?: string;
  /** The expected form, as a noun phrase or a sentence. */
  readonly expected: string;
};
