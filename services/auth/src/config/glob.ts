/** A compiled glob: a nondeterministic finite automaton, which never backtracks. */
export interface Glob {
  readonly source: string;
  readonly steps: readonly Step[];
  readonly start: number;
}

/** Numbers are indexes of steps. */
type Step =
  | { readonly kind: 'read'; readonly accepts: Accepts; readonly next: number }
  | { readonly kind: 'fork'; readonly to: number[] }
  | { readonly kind: 'matched' };

type Accepts = (char: string) => boolean;

/** One character, any number of characters, or one of several sequences. */
type Piece =
  | { readonly kind: 'one' | 'many'; readonly accepts: Accepts }
  | { readonly kind: 'choice'; readonly choices: readonly (readonly Piece[])[] };

/** The part of the URL that a piece is in. Wildcards do not match beyond it. */
type Region = 'scheme' | 'authority' | 'rest';

/** Limits the cost of a match, with the limit of URLs. */
export const maxGlobChars = 1024;
/** Maximum depth of nested braces. */
const maxDepth = 8;

/** Characters that `*` and `?` do not match. */
const separators = './';
/** Characters that end a region. */
const ends: Readonly<Record<Region, string>> = { scheme: ':/?#', authority: '/?#\\@', rest: '' };
/** Strictest first. After choices that end in different regions, the strictest applies. */
const regions: readonly Region[] = ['scheme', 'authority', 'rest'];

class InvalidGlob extends Error {}

/**
 * Compiles a glob for URLs: `*` matches any characters except `.` and `/`, `**` any characters, `?`
 * one character except `.` and `/`; `[abc]`, `[!a]`, `[a-z]`, `{a,b}`; `\` escapes a character.
 *
 * Wildcards in scheme or authority, including `**`, do not match beyond them:
 * `https://**.example.com/**` does not match `https://evil.test/.example.com/`. Only `**` at the
 * end matches everything.
 *
 * Returns undefined for an invalid glob, or one longer than {@link maxGlobChars}.
 */
export function parseGlob(source: string): Glob | undefined {
  if (source === '' || source.length > maxGlobChars) return undefined;
  try {
    const steps: Step[] = [{ kind: 'matched' }];
    return { source, steps, start: compile(new GlobParser(source).parse(), steps, 0) };
  } catch (error) {
    if (error instanceof InvalidGlob) return undefined;
    throw error;
  }
}

/** Whether the whole text matches, in time proportional to the product of both lengths. */
export function matchesGlob(glob: Glob, text: string): boolean {
  return findMismatch(glob, text) === undefined;
}

/**
 * Index of the first character that cannot follow the ones before it; the length of the text if it
 * ends too early. Undefined if the text matches.
 */
export function findMismatch({ steps, start }: Glob, text: string): number | undefined {
  let states = withForks(steps, [start]);
  let at = 0;
  for (const char of text) {
    const read = [...states].flatMap((state) => {
      const step = steps[state];
      return step?.kind === 'read' && step.accepts(char) ? [step.next] : [];
    });
    if (read.length === 0) return at;
    states = withForks(steps, read);
    at += char.length;
  }
  return states.has(0) ? undefined : at;
}

function withForks(steps: readonly Step[], from: readonly number[]): ReadonlySet<number> {
  const reached = new Set<number>();
  const open = [...from];
  for (let state = open.pop(); state !== undefined; state = open.pop()) {
    if (reached.has(state)) continue;
    reached.add(state);
    const step = steps[state];
    if (step?.kind === 'fork') open.push(...step.to);
  }
  return reached;
}

/** Adds the steps of the pieces, last first, and returns the first one. `next` follows the last. */
function compile(pieces: readonly Piece[], steps: Step[], next: number): number {
  return pieces.reduceRight((after, piece) => {
    if (piece.kind === 'one') return steps.push({ kind: 'read', accepts: piece.accepts, next: after }) - 1;
    if (piece.kind === 'choice') {
      const to = piece.choices.map((choice) => compile(choice, steps, after));
      return steps.push({ kind: 'fork', to }) - 1;
    }
    const fork = { kind: 'fork' as const, to: [after] };
    const start = steps.push(fork) - 1;
    fork.to.push(steps.push({ kind: 'read', accepts: piece.accepts, next: start }) - 1);
    return start;
  }, next);
}

class GlobParser {
  readonly #source: string;
  #at = 0;
  #region: Region = 'scheme';

  constructor(source: string) {
    this.#source = source;
  }

  /** Parses up to the end, or within braces up to `,` or `}`. */
  parse(depth = 0): readonly Piece[] {
    const pieces: Piece[] = [];
    while (this.#at < this.#source.length && !(depth > 0 && ',}'.includes(this.#source.charAt(this.#at))))
      pieces.push(this.#piece(depth));
    return pieces;
  }

  #next(): string {
    return this.#source.charAt(this.#at++);
  }

  #piece(depth: number): Piece {
    const char = this.#next();
    if (char === '*') return this.#wildcard();
    if (char === '?') return { kind: 'one', accepts: except(separators + ends[this.#region]) };
    if (char === '[') return this.#characterClass();
    if (char === '{') return this.#choice(depth + 1);
    return this.#literal(char === '\\' ? this.#next() : char);
  }

  #wildcard(): Piece {
    const isDouble = this.#source.charAt(this.#at) === '*';
    if (!isDouble) return { kind: 'many', accepts: except(separators + ends[this.#region]) };
    this.#at++;
    const isLast = this.#at === this.#source.length;
    return { kind: 'many', accepts: isLast ? () => true : except(ends[this.#region]) };
  }

  #literal(char: string): Piece {
    if (char === '') throw new InvalidGlob();
    const isEnd = ends[this.#region].includes(char);
    if (this.#region === 'scheme' && char === ':' && this.#source.startsWith('//', this.#at)) {
      this.#at += 2;
      this.#region = 'authority';
      return { kind: 'choice', choices: [[...'://'].map((each) => one(each))] };
    }
    if (isEnd) this.#region = 'rest';
    return one(char);
  }

  #characterClass(): Piece {
    const end = this.#source.indexOf(']', this.#at);
    const isNegated = this.#source.charAt(this.#at) === '!';
    const members = this.#source.slice(isNegated ? this.#at + 1 : this.#at, end);
    if (end === -1 || members === '') throw new InvalidGlob();
    this.#at = end + 1;
    const isMember = parseClass(members);
    const passes = except(isNegated ? separators + ends[this.#region] : ends[this.#region]);
    return { kind: 'one', accepts: (char) => isMember(char) !== isNegated && passes(char) };
  }

  #choice(depth: number): Piece {
    if (depth > maxDepth) throw new InvalidGlob();
    const before = this.#region;
    const after: Region[] = [];
    const choices: (readonly Piece[])[] = [];
    do {
      this.#region = before;
      choices.push(this.parse(depth));
      after.push(this.#region);
    } while (this.#next() === ',');
    if (this.#source.charAt(this.#at - 1) !== '}') throw new InvalidGlob();
    this.#region = regions.find((region) => after.includes(region)) ?? 'rest';
    return { kind: 'choice', choices };
  }
}

function one(wanted: string): Piece {
  return { kind: 'one', accepts: (char) => char === wanted };
}

function except(excluded: string): Accepts {
  return (char) => !excluded.includes(char);
}

/** Parses a class such as `abc` or `a-z0-9`. */
function parseClass(members: string): Accepts {
  const ranges: (readonly [from: string, to: string])[] = [];
  for (let at = 0; at < members.length; at++) {
    const from = members.charAt(at);
    const isRange = members.charAt(at + 1) === '-' && at + 2 < members.length;
    ranges.push([from, isRange ? members.charAt(at + 2) : from]);
    if (isRange) at += 2;
  }
  return (char) => ranges.some(([from, to]) => char >= from && char <= to);
}
