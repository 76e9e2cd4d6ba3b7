/** A glob, ready to be matched: the steps of a machine that is in many states at once, and so never goes back. */
export interface Glob {
  readonly source: string;
  readonly steps: readonly Step[];
  readonly start: number;
}

/** Reads a character, goes on in several places, or has matched. Numbers are positions in the list of steps. */
type Step =
  | { readonly kind: 'read'; readonly accepts: Accepts; readonly next: number }
  | { readonly kind: 'fork'; readonly to: number[] }
  | { readonly kind: 'matched' };

type Accepts = (char: string) => boolean;

/** A piece of a glob: one character, any number of them, or one of several sequences. */
type Piece =
  | { readonly kind: 'one' | 'many'; readonly accepts: Accepts }
  | { readonly kind: 'choice'; readonly choices: readonly (readonly Piece[])[] };

/** The part of a URL that a piece stands in: its wildcards end where that part does. */
type Region = 'scheme' | 'authority' | 'rest';

/** Longest glob that is taken; together with the longest URL it bounds the work of a match. */
export const maxGlobChars = 1024;
/** Braces are not nested deeper. */
const maxDepth = 8;

/** What `*` and `?` never pass. */
const separators = './';
/** What ends a region. */
const ends: Readonly<Record<Region, string>> = { scheme: ':/?#', authority: '/?#\\@', rest: '' };
/** From the strictest on: after choices that end in different regions the strictest holds. */
const regions: readonly Region[] = ['scheme', 'authority', 'rest'];

class NoGlob extends Error {}

/**
 * Reads a glob for URLs: `*` any characters but `.` and `/`, `**` any, `?` one but `.` and `/`, `[abc]`, `[!a]`, `[a-z]`, `{a,b}`,
 * and `\` before a character that stands for itself.
 *
 * Wildcards in the scheme or the authority end there, also `**`: `https://**.example.com/**` does not match
 * `https://evil.test/.example.com/`. Only `**` at the very end passes everything.
 *
 * Answers undefined for what is no glob, and for one longer than {@link maxGlobChars}.
 */
export function parseGlob(source: string): Glob | undefined {
  if (source === '' || source.length > maxGlobChars) return undefined;
  try {
    const steps: Step[] = [{ kind: 'matched' }];
    return { source, steps, start: compile(parsePieces(source), steps, 0) };
  } catch (error) {
    if (error instanceof NoGlob) return undefined;
    throw error;
  }
}

/** Does the glob match the whole text? The time is bounded by the product of their lengths. */
export function matchesGlob({ steps, start }: Glob, text: string): boolean {
  let states = withForks(steps, [start]);
  for (const char of text) {
    const read = [...states].flatMap((state) => {
      const step = steps[state];
      return step?.kind === 'read' && step.accepts(char) ? [step.next] : [];
    });
    states = withForks(steps, read);
  }
  return states.has(0);
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

/** Adds the steps of the pieces, last first, and answers where they start. `next` is where they lead. */
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

function parsePieces(source: string): readonly Piece[] {
  let at = 0;
  let region: Region = 'scheme';

  function sequence(depth: number): readonly Piece[] {
    const pieces: Piece[] = [];
    while (at < source.length && !(depth > 0 && ',}'.includes(source.charAt(at)))) pieces.push(piece(depth));
    return pieces;
  }

  function piece(depth: number): Piece {
    const char = source.charAt(at++);
    if (char === '*') return stars();
    if (char === '?') return { kind: 'one', accepts: except(separators + ends[region]) };
    if (char === '[') return characterClass();
    if (char === '{') return choice(depth + 1);
    return literal(char === '\\' ? source.charAt(at++) : char);
  }

  function stars(): Piece {
    const isDouble = source.charAt(at) === '*';
    if (!isDouble) return { kind: 'many', accepts: except(separators + ends[region]) };
    at++;
    return { kind: 'many', accepts: at === source.length ? () => true : except(ends[region]) };
  }

  function literal(wanted: string): Piece {
    if (wanted === '') throw new NoGlob();
    const isEnd = ends[region].includes(wanted);
    if (region === 'scheme' && wanted === ':' && source.startsWith('//', at)) {
      at += 2;
      region = 'authority';
      const choices = [[...'://'].map((char) => one(char))];
      return { kind: 'choice', choices };
    }
    if (isEnd) region = 'rest';
    return one(wanted);
  }

  function characterClass(): Piece {
    const end = source.indexOf(']', at);
    const isNegated = source.charAt(at) === '!';
    const members = source.slice(isNegated ? at + 1 : at, end);
    if (end === -1 || members === '') throw new NoGlob();
    at = end + 1;
    const isMember = memberOf(members);
    const passes = except(isNegated ? separators + ends[region] : ends[region]);
    return { kind: 'one', accepts: (char) => isMember(char) !== isNegated && passes(char) };
  }

  function choice(depth: number): Piece {
    if (depth > maxDepth) throw new NoGlob();
    const before = region;
    const after: Region[] = [];
    const choices: (readonly Piece[])[] = [];
    do {
      region = before;
      choices.push(sequence(depth));
      after.push(region);
    } while (source.charAt(at++) === ',');
    if (source.charAt(at - 1) !== '}') throw new NoGlob();
    region = regions.find((known) => after.includes(known)) ?? 'rest';
    return { kind: 'choice', choices };
  }

  return sequence(0);
}

function one(wanted: string): Piece {
  return { kind: 'one', accepts: (char) => char === wanted };
}

function except(excluded: string): Accepts {
  return (char) => !excluded.includes(char);
}

/** Is a character one of a class such as `abc` or `a-z0-9`? */
function memberOf(members: string): Accepts {
  const ranges: (readonly [from: string, to: string])[] = [];
  for (let at = 0; at < members.length; at++) {
    const from = members.charAt(at);
    const isRange = members.charAt(at + 1) === '-' && at + 2 < members.length;
    ranges.push([from, isRange ? members.charAt(at + 2) : from]);
    if (isRange) at += 2;
  }
  return (char) => ranges.some(([from, to]) => char >= from && char <= to);
}
