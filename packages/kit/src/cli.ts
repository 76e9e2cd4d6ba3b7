/** Result of a command: its output and exit code. */
export interface Outcome {
  readonly exitCode: number;
  /** Text for standard output. */
  readonly output?: string;
  /** Text for standard error. */
  readonly errors?: string;
}

/** Exit code of invalid arguments, as in shells and Go's `flag` package. */
const usageExitCode = 2;

/** The outcome of invalid arguments: the problems, one per line, and a hint at `--help`. */
export function wrongUsage(command: string, problems: readonly string[]): Outcome {
  const lines = [...problems, `${command} --help says how it is called`];
  return { exitCode: usageExitCode, errors: lines.map((line) => `${line}\n`).join('') };
}

/** Writes the output of a command, and sets the exit code of the process. */
export function finish({ exitCode, output = '', errors = '' }: Outcome): void {
  process.stdout.write(output);
  process.stderr.write(errors);
  process.exitCode = exitCode;
}

/**
 * A flag of a command: `text` takes a value, `list` takes one per occurrence, `switch` takes none.
 */
interface Flag {
  readonly kind: 'text' | 'list' | 'switch';
  /** One sentence for `--help`. */
  readonly doc: string;
  /** Placeholder of the value in `--help`. */
  readonly value?: string;
  /** Default of a `text`; empty if absent. */
  readonly default?: string;
}

/** Flags of a command by name. */
export type FlagSpec = Readonly<Record<string, Flag>>;

/** Values of flags: the last occurrence of each, all of them for a `list`. */
export type FlagValues<S extends FlagSpec> = {
  readonly [Name in keyof S]: {
    readonly text: string;
    readonly list: readonly string[];
    readonly switch: boolean;
  }[S[Name]['kind']];
};

/** Parsed arguments. */
export type ParsedFlags<S extends FlagSpec> =
  | { readonly kind: 'values'; readonly values: FlagValues<S> }
  | { readonly kind: 'help' }
  | { readonly kind: 'wrong'; readonly problems: readonly string[] };

/** Booleans as in Go, for compatibility with the original commands. */
const booleans: Readonly<Record<string, boolean>> = {
  ...{ 1: true, t: true, T: true, true: true, TRUE: true, True: true },
  ...{ 0: false, f: false, F: false, false: false, FALSE: false, False: false },
};

/**
 * Reads flags as Go's `flag` package does: `-name value`, `-name=value`, `-switch`,
 * `-switch=false`, each with one dash or two. `-h` and `-help` show help. Other arguments are
 * problems; all problems are reported at once.
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
      problems.push(`unknown flag -${name}: expected one of ${flagNames(spec)}`);
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
  return { kind: 'values', values: collectValues(spec, given, switches) };
}

function splitFlag(arg: string): { readonly name?: string; readonly value?: string | undefined } {
  const match = /^--?([^-=][^=]*)(?:=(.*))?$/s.exec(arg);
  return match?.[1] === undefined ? {} : { name: match[1], value: match[2] };
}

function collectValues<S extends FlagSpec>(
  spec: S,
  given: ReadonlyMap<string, string[]>,
  switches: ReadonlyMap<string, boolean>,
): FlagValues<S> {
  const entries = Object.entries(spec).map(([name, flag]) => {
    if (flag.kind === 'switch') return [name, switches.get(name) ?? false];
    if (flag.kind === 'list') return [name, given.get(name) ?? []];
    return [name, given.get(name)?.at(-1) ?? flag.default ?? ''];
  });
  // Object.fromEntries loses the types of keys; each value comes from its flag.
  return Object.fromEntries(entries) as FlagValues<S>;
}

/** All flags with their descriptions, for `--help`. */
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
