import type { Entry } from './match.ts';
import type { RuleNode } from './rule-set.ts';

/** Longest part of a text that is compared; the work grows with its square. */
const maxCompared = 32;

/**
 * How many characters must be put in, left out or changed to make one text of the other, by their
 * first 32.
 */
export function editDistance(a: string, b: string): number {
  const to = b.slice(0, maxCompared);
  let above = Array.from({ length: to.length + 1 }, (_, column) => column);
  for (let row = 1; row <= Math.min(a.length, maxCompared); row++) {
    const current = [row];
    for (let column = 1; column <= to.length; column++) {
      const change = a.charCodeAt(row - 1) === to.charCodeAt(column - 1) ? 0 : 1;
      const [left = 0, over = 0, diagonal = 0] = [current[column - 1], above[column], above[column - 1]];
      current.push(Math.min(left + 1, over + 1, diagonal + change));
    }
    above = current;
  }
  return above.at(-1) ?? 0;
}

/** Maximum number of near misses per descriptor. */
const maxNear = 5;

/** Maximum number of siblings compared; a level may have 100,000. */
const maxScanned = 10_000;

/** How far a descriptor matched: the number of matched entries and the node of the last one. */
export interface Progress {
  readonly matched: number;
  readonly last: RuleNode;
}

/** Explains why no rule limits a descriptor: the reason first, then the most similar rules. */
export function explainMiss(
  root: RuleNode,
  entries: readonly Entry[],
  { matched, last }: Progress,
): string[] {
  if (entries.length === 0) return ['the descriptor has no entries'];
  const notTried = untriedKeys(root, entries, last);
  const entry = entries[matched];
  if (entry === undefined) return [...missingEntries(entries, last), ...notTried];
  const before = `matched ${matched} of ${entries.length} entries`;
  if (last.children === undefined) {
    const limit =
      last.match === undefined ? '' : `; '${nodePath(last)}' limits descriptors of ${matched} only`;
    return [`${before}: the rule has no deeper level for '${entry.key}'${limit}`, ...notTried];
  }
  return [`${before}: nothing takes '${entry.key}' = '${entry.value}'`, ...nearest(last, entry), ...notTried];
}

/** All entries matched, but limits are only on deeper levels, or absent. */
function missingEntries(entries: readonly Entry[], last: RuleNode): string[] {
  if (last.children === undefined) return [`'${nodePath(last)}' has no limit: it allows everything`];
  const keys = listKeys(siblingKeys(last), ' or ');
  return [`matched all ${entries.length} entries: the rule needs 1 more entry: ${keys}`];
}

function nearest(parent: RuleNode, entry: Entry): string[] {
  const sameKey: RuleNode[] = [];
  let scanned = 0;
  for (const child of parent.children?.values() ?? []) {
    if (++scanned > maxScanned) break;
    if (nodeKey(child) === entry.key) sameKey.push(child);
  }
  if (sameKey.length === 0) {
    const keys = listKeys(byNearness(siblingKeys(parent), entry.key), ', ');
    return [`no rule has the key '${entry.key}' here; keys: ${keys}`];
  }
  return sameKey
    .map((child) => ({ child, shared: sharedLength(valuePart(child), entry.value) }))
    .sort((a, b) => b.shared - a.shared)
    .slice(0, maxNear)
    .map(({ child }) => valueMiss(child, entry));
}

function valueMiss(child: RuleNode, entry: Entry): string {
  const value = valuePart(child);
  const verb = value.includes('*') ? 'does not match' : 'is not';
  return `'${nodePath(child)}': key matches but value '${entry.value}' ${verb} '${value}'`;
}

/** Bare keys that match an entry for which a more exact node was found first, which is final. */
function untriedKeys(root: RuleNode, entries: readonly Entry[], last: RuleNode): string[] {
  const taken: RuleNode[] = [];
  for (let node = last; node !== root && node.parent !== undefined; node = node.parent) taken.unshift(node);
  const notes: string[] = [];
  for (const [index, node] of taken.entries()) {
    const entry = entries[index];
    const bare = entry === undefined ? undefined : node.parent?.children?.get(entry.key);
    if (bare !== undefined && bare !== node)
      notes.push(`'${nodePath(bare)}' is not tried because '${nodePath(node)}' matched first`);
  }
  return notes;
}

function siblingKeys(parent: RuleNode): string[] {
  const keys = new Set<string>();
  let scanned = 0;
  for (const child of parent.children?.values() ?? []) {
    if (++scanned > maxScanned) break;
    keys.add(nodeKey(child));
  }
  return [...keys];
}

/** The most similar spelling first; equally similar keys keep the order of configuration. */
function byNearness(keys: readonly string[], wanted: string): string[] {
  return keys
    .map((key) => ({ key, distance: editDistance(key, wanted) }))
    .sort((a, b) => a.distance - b.distance)
    .map(({ key }) => key);
}

function listKeys(keys: readonly string[], separator: string): string {
  const listed = keys.slice(0, maxNear).join(separator);
  return keys.length > maxNear ? `${listed} and ${keys.length - maxNear} more` : listed;
}

function nodePath(node: RuleNode): string {
  return node.parent === undefined ? node.composite : `${nodePath(node.parent)}.${node.composite}`;
}

const nodeKey = (node: RuleNode) => node.composite.slice(0, node.keyLength);
const valuePart = (node: RuleNode) => node.composite.slice(node.keyLength + 1);

function sharedLength(a: string, b: string): number {
  let length = 0;
  while (length < a.length && a.charCodeAt(length) === b.charCodeAt(length)) length++;
  return length;
}
