import type { DescriptorSpec, RuleDocument } from '../definition/document.ts';
import type { Rule, RuleNode } from './rule-set.ts';

/** Metadata of the node of an ADS client: bits of the rules that have matched, by domain. */
export const matchedRulesKey = 'tollgate.dev/matched-rules';

/** The rules of a domain in the order of its document, which is that of their bits. */
export function listRules({ match, children }: RuleNode): readonly Rule[] {
  const below = [...(children?.values() ?? [])].flatMap(listRules);
  return match === undefined ? below : [match.rule, ...below];
}

/** Paths of the rules of a document, in the order of their bits: those on trial come last. */
export function listRulePaths({ domain, descriptors, trial }: RuleDocument): readonly string[] {
  const all = [...descriptors, ...(trial?.descriptors ?? [])];
  return all.flatMap((spec) => listPaths(spec, domain));
}

function listPaths(
  { key, value = '', rateLimit, descriptors = [] }: DescriptorSpec,
  parent: string,
): string[] {
  const path = value === '' ? `${parent}.${key}` : `${parent}.${key}_${value}`;
  const below = descriptors.flatMap((spec) => listPaths(spec, path));
  return rateLimit === undefined ? below : [path, ...below];
}

/** Bits in base64, the first one lowest; undefined when none is set. */
export function encodeBits(bits: readonly boolean[]): string | undefined {
  if (!bits.includes(true)) return undefined;
  const bytes = Buffer.alloc(Math.ceil(bits.length / 8));
  for (const [index, bit] of bits.entries())
    if (bit) bytes[index >> 3] = (bytes[index >> 3] ?? 0) | (1 << (index & 7));
  return bytes.toString('base64');
}

/** Items whose bits are set. */
export function pickByBits<Item>(items: readonly Item[], text: string): readonly Item[] {
  const bytes = Buffer.from(text, 'base64');
  return items.filter((_, index) => ((bytes[index >> 3] ?? 0) & (1 << (index & 7))) !== 0);
}
