/** How a command ends: what it writes, and with which code it exits. */
export interface Outcome {
  readonly exitCode: number;
  /** For standard output. */
  readonly output?: string;
  /** For standard error. */
  readonly errors?: string;
}

/** The exit code of arguments that make no sense, as shells and Go's `flag` package have it. */
const usageExitCode = 2;

/** Refuses arguments: the problems, one a line, and where help is. */
export function wrongUsage(command: string, problems: readonly string[]): Outcome {
  const lines = [...problems, `${command} --help says how it is called`];
  return { exitCode: usageExitCode, errors: lines.map((line) => `${line}\n`).join('') };
}

/** Writes what a command has to say, and lets the process end with its code once that is written. */
export function finish({ exitCode, output = '', errors = '' }: Outcome): void {
  process.stdout.write(output);
  process.stderr.write(errors);
  process.exitCode = exitCode;
}

/** One flag of a command: `text` takes a value, `list` takes one each time it comes, `switch` takes none. */
interface Flag {
  readonly kind: 'text' | 'list' | 'switch';
  /** What it does, one sentence for `--help`. */
  readonly doc: string;
  /** What its value is called in `--help`. */
  readonly value?: string;
  /** Value of a `text` that is not given; empty without it. */
  readonly default?: string;
}

/** The flags of a command by their names. */
export type FlagSpec = Readonly<Record<string, Flag>>;

/** The values of flags: those of the last time each came, all of them for a `list`. */
export type FlagValues<S extends FlagSpec> = {
  readonly [Name in keyof S]: {
    readonly text: string;
    readonly list: readonly string[];
    readonly switch: boolean;
  }[S[Name]['kind']];
};

/** What the arguments come to. */
export type ParsedFlags<S extends FlagSpec> =
  | { readonly kind: 'values'; readonly values: FlagValues<S> }
  | { readonly kind: 'help' }
  | { readonly kind: 'wrong'; readonly problems: readonly string[] };

/** What Go takes for a boolean; the commands are called as those that they take the place of. */
const booleans: Readonly<Record<string, boolean>> = {
  ...{ 1: true, t: true, T: true, true: true, TRUE: true, True: true },
  ...{ 0: false, f: false, F: false, false: false, FALSE: false, False: false },
};

/**
 * Reads flags as Go's `flag` package does: `-name value`, `-name=value`, `-switch`, `-switch=false`, each with one dash or
 * two. `-h` and `-help` ask for help. What is no flag is a problem; all problems are found at once.
 */
export function parseFlags<const S extends FlagSpec>(spec: S, args: readonly string[]): ParsedFlags<S> {
  const given = new Map<string, string[]>();
  const switches = new Map<string, boolean>();
  const problems: string[] = [];
  const rest = [...args];
  for (let arg = rest.shift(); arg !== undefined; arg = rest.shift()) {
    const { name, value } = splitFlag(arg);
    if (name === undefined) {
      problems.push(`unexpected argument '${arg}'`);
      continue;
    }
    if (name === 'h' || name === 'help') return { kind: 'help' };
    const flag = Object.hasOwn(spec, name) ? spec[name] : undefined;
    if (flag === undefined) {
      problems.push(`unknown flag -${name}: there are ${flagNames(spec)}`);
    } else if (flag.kind === 'switch') {
      const on = booleans[value ?? 'true'];
      if (on === undefined) problems.push(`-${name} is true or false, not '${value}'`);
      switches.set(name, on ?? false);
    } else {
      const text = value ?? rest.shift();
      if (text === undefined) problems.push(`-${name} needs a value`);
      else given.set(name, [...(given.get(name) ?? []), text]);
    }
  }
  if (problems.length > 0) return { kind: 'wrong', problems };
  return { kind: 'values', values: valuesOf(spec, given, switches) };
}

function splitFlag(arg: string): { readonly name?: string; readonly value?: string | undefined } {
  const match = /^--?([^-=][^=]*)(?:=(.*))?$/s.exec(arg);
  return match?.[1] === undefined ? {} : { name: match[1], value: match[2] };
}

function valuesOf<S extends FlagSpec>(
  spec: S,
  given: ReadonlyMap<string, string[]>,
  switches: ReadonlyMap<string, boolean>,
): FlagValues<S> {
  const entries = Object.entries(spec).map(([name, flag]) => {
    if (flag.kind === 'switch') return [name, switches.get(name) ?? false];
    if (flag.kind === 'list') return [name, given.get(name) ?? []];
    return [name, given.get(name)?.at(-1) ?? flag.default ?? ''];
  });
  // Object.fromEntries forgets which key has which value; each was made from its flag just above.
  return Object.fromEntries(entries) as FlagValues<S>;
}

/** All flags with their docs, for `--help`. */
export function describeFlags(spec: FlagSpec): string {
  return Object.entries(spec)
    .map(([name, flag]) => {
      const value = flag.kind === 'switch' ? '' : ` <${flag.value ?? 'text'}>`;
      const fallback = flag.default === undefined ? '' : ` (default ${flag.default})`;
      const again = flag.kind === 'list' ? ' May be repeated.' : '';
      return `  -${name}${value}\n        ${flag.doc}${again}${fallback}\n`;
    })
    .join('');
}

function flagNames(spec: FlagSpec): string {
  return [...Object.keys(spec), 'help'].map((name) => `-${name}`).join(', ');
}
