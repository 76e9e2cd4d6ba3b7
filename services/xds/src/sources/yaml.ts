import { parse, type YamlDocument } from '@tollgate/yaml/documents';
import type { Position } from '@tollgate/yaml/position';
import { parseScalar } from '@tollgate/yaml/scalars';

/** A scalar that YAML 1.2, used here, and YAML 1.1, used by kubectl, read as different values. */
export interface AmbiguousScalar extends Position {
  /** JSON path in the document. */
  readonly path: string;
  /** What is wrong with it and what to write instead. */
  readonly message: string;
}

/** Most reported of one document. */
const maxAmbiguous = 100;

/** Finds scalars that kubectl reads differently: `0100` must not be 100 in a folder and 64 in a cluster. */
export function findAmbiguousScalars(document: YamlDocument): readonly AmbiguousScalar[] {
  const found: AmbiguousScalar[] = [];
  document.visitPlainScalars((text, locate) => {
    const message = found.length === maxAmbiguous ? undefined : ambiguityOf(text);
    if (message === undefined) return;
    const { path, position } = locate();
    found.push({ ...position, path, message });
  });
  return found;
}

/** Nearly all scalars: words without another meaning, and numbers without a leading zero. */
const isPlainly = /^(?:[1-9][0-9]{0,14}|0|true|false|null)$|^(?![yYnNoOtTfF][a-zA-Z]{0,4}$)[a-zA-Z/*_]/;

function ambiguityOf(text: string): string | undefined {
  // Both read scalars with white space as text.
  if (isPlainly.test(text) || /\s/.test(text) || text === '<<') return undefined;
  const here = parseYaml12(text);
  const there = parseScalar(text);
  if (Object.is(here, there) || here === there) return undefined;
  const advice =
    typeof here === 'string' ? `put it in quotes, or write ${String(there)}` : `write ${String(here)}`;
  return `${text} is ${nameOf(here)} here and ${nameOf(there)} for kubectl: ${advice}`;
}

/** Parsed as a list item, so that no text is taken for a document marker. */
function parseYaml12(text: string): unknown {
  const parsed = parse({ text: `- ${text}`, linesBefore: 0 });
  const items = parsed.ok ? parsed.documents[0]?.value : undefined;
  return Array.isArray(items) ? items[0] : items;
}

const nameOf = (value: unknown): string => (typeof value === 'string' ? 'text' : String(value));
