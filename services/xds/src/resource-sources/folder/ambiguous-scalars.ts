import { createPlaceFinder } from '@tollgate/rules/place-finder';
import { isNullText, parseBoolean, parseFloatText, parseInteger } from '@tollgate/rules/yaml-scalar';
import { CORE_SCHEMA, load } from 'js-yaml';
import type { YamlPart } from './split-documents.ts';
import { visitYamlNodes } from './yaml-nodes.ts';

/** A scalar that YAML 1.2, which is read here, and YAML 1.1, which kubectl reads, take for different values. */
export interface AmbiguousScalar {
  /** Number of the document in the part, from 0. */
  readonly document: number;
  readonly line: number;
  readonly column: number;
  /** JSON path in the document. */
  readonly path: string;
  /** What is wrong with it and what to write instead. */
  readonly message: string;
}

/** Most of one part: a person corrects a few and tries again. */
const maxAmbiguous = 100;

/**
 * Finds the scalars that kubectl would take for something else: a limit of `0100` must not be 100 in a folder and 64 in
 * a cluster.
 */
export function findAmbiguousScalars({ text, linesBefore }: YamlPart): readonly AmbiguousScalar[] {
  const found: AmbiguousScalar[] = [];
  const findPlace = createPlaceFinder(text);
  visitYamlNodes(text, ({ document, offset, plain, path }) => {
    const message = plain === undefined || found.length === maxAmbiguous ? undefined : ambiguityOf(plain);
    if (message === undefined) return;
    const { line = 1, column = 1 } = findPlace(offset);
    found.push({ document, line: linesBefore + line, column, path: path(), message });
  });
  return found;
}

/** What nearly all scalars are: names that mean nothing else, and numbers without a leading zero. */
const isPlainly = /^(?:[1-9][0-9]{0,14}|0|true|false|null)$|^(?![yYnNoOtTfF][a-zA-Z]{0,4}$)[a-zA-Z/*_]/;

function ambiguityOf(text: string): string | undefined {
  // Of what has white space in it both make text.
  if (isPlainly.test(text) || /\s/.test(text) || text === '<<') return undefined;
  const here = asReadHere(text);
  const there = asKubectlReads(text);
  if (Object.is(here, there) || here === there) return undefined;
  const advice =
    typeof here === 'string' ? `put it in quotes, or write ${String(there)}` : `write ${String(here)}`;
  return `${text} is ${nameOf(here)} here and ${nameOf(there)} for kubectl: ${advice}`;
}

/** As an item, so that nothing in the text can be taken for a marker. */
function asReadHere(text: string): unknown {
  const items: unknown = load(`- ${text}`, { schema: CORE_SCHEMA });
  return Array.isArray(items) ? items[0] : items;
}

function asKubectlReads(text: string): unknown {
  if (isNullText(text)) return null;
  return parseBoolean(text) ?? parseInteger(text) ?? parseFloatText(text) ?? text;
}

const nameOf = (value: unknown): string => (typeof value === 'string' ? 'text' : String(value));
