/**
 * Measures loading and matching: `node --expose-gc packages/rules/bench/load-and-match.ts [rules]`.
 * Prints the time and the growth of memory for loading, and the time of a match for few and many
 * rules. Run by hand or by `make bench`.
 */

import { type Entry, matchEntries } from '@tollgate/rules/match';
import type { RuleNode } from '@tollgate/rules/rule-set';
import { loadRuleFiles } from '../src/read/load-rule-files.ts';

const ruleCount = Number(process.argv[2] ?? 100_000);
const matchCount = 2_000_000;

/** Rules of five lines, about 100 bytes each. */
function makeYaml(count: number): string {
  const parts = ['domain: bench\ndescriptors:\n'];
  for (let i = 0; i < count; i++) {
    const value = `tenant-${String(i).padStart(6, '0')}`;
    const limit = `    rate_limit:\n      unit: minute\n      requests_per_unit: ${(i % 1000) + 1}\n`;
    parts.push(`  - key: tenant\n    value: ${value}\n${limit}`);
  }
  // Through bytes, as a file is read: a text made by join alone would not be flat.
  return Buffer.from(parts.join('')).toString();
}

function loadDomain(text: string): RuleNode {
  const result = loadRuleFiles([{ source: 'bench.yaml', text }], { mergeDomains: false });
  const domain = result.ok ? result.rules.domains.get('bench') : undefined;
  if (domain === undefined) throw new Error('the bench rules must load');
  return domain;
}

function measureMatch(domain: RuleNode, requests: readonly (readonly Entry[])[]): number {
  let found = 0;
  const start = performance.now();
  for (let i = 0; i < matchCount; i++) {
    const entries = requests[i % requests.length];
    if (entries !== undefined && matchEntries(domain, entries) !== undefined) found++;
  }
  const nanos = ((performance.now() - start) * 1e6) / matchCount;
  if (found !== matchCount) throw new Error(`matched ${found} of ${matchCount}`);
  return nanos;
}

/** Requests whose texts are new strings, as a decoder makes them. */
function makeRequests(count: number): Entry[][] {
  return Array.from({ length: 10_000 }, (_, i) => {
    const value = `tenant-${String((i * 7919) % count).padStart(6, '0')}`;
    return [{ key: Buffer.from('tenant').toString(), value: Buffer.from(value).toString() }];
  });
}

const megabytes = (bytes: number) => `${(bytes / 1e6).toFixed(0)} MB`;

const text = makeYaml(ruleCount);
global.gc?.();
const before = process.memoryUsage();
const start = performance.now();
const domain = loadDomain(text);
const loadMs = performance.now() - start;
const peakRss = process.resourceUsage().maxRSS * 1024;
global.gc?.();
const after = process.memoryUsage();

console.log(`text                     ${megabytes(text.length)}`);
console.log(`load ${ruleCount} rules        ${loadMs.toFixed(0)} ms`);
console.log(`peak of resident memory  +${megabytes(peakRss - before.rss)}`);
console.log(`heap kept                +${megabytes(after.heapUsed - before.heapUsed)}`);
const small = loadDomain(makeYaml(10));
for (const [name, node, count] of [
  ['10', small, 10] as const,
  [`${ruleCount}`, domain, ruleCount] as const,
]) {
  measureMatch(node, makeRequests(count));
  console.log(`match among ${name} rules: ${measureMatch(node, makeRequests(count)).toFixed(0)} ns`);
}
