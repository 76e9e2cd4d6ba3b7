import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { type Entry, matchEntries } from '../src/match/match.ts';
import type { RuleNode } from '../src/match/rule-set.ts';
import { loadRuleFiles } from '../src/read/load-rule-files.ts';
import { domain, type RuleShapeName, ruleShapes } from './rule-shapes.ts';

/** Cost of a rule file of one shape and size. */
export interface ShapeCost {
  shape: RuleShapeName;
  rules: number;
  fileBytes: number;
  /**
   * First load in a fresh process, compiler warm-up included, as a service sees it at its start.
   */
  loadMs: number;
  /** Memory that the rules keep. */
  heapBytes: number;
  /**
   * Most resident memory while they were loaded, the process itself and the file's text included.
   */
  peakRssBytes: number;
  /** Time to find the rule of one descriptor, in nanoseconds. */
  matchNanos: number;
}

const lookUps = 200_000;

/** Different requests, so that look-ups do not all hit the same cache line. */
const requestCount = 10_000;

/**
 * Loads one rule file and looks rules up. Call it once in a process: the peak of memory is that of
 * the process.
 *
 * @throws Error when the file does not load.
 */
export function measureShape(shape: RuleShapeName, rules: number): ShapeCost {
  const { write, request } = ruleShapes[shape];
  const text = write(rules);
  const heapBefore = liveHeapBytes();
  const startedAt = performance.now();
  const loaded = loadRuleFiles([{ source: `${shape}.yaml`, text }], { mergeDomains: false });
  const loadMs = performance.now() - startedAt;
  // Before the collection below, which allocates as well.
  const peakRssBytes = process.resourceUsage().maxRSS * 1024;
  if (!loaded.ok) throw new Error(`the rules do not load: ${loaded.problems[0]?.message}`);
  const heapBytes = liveHeapBytes() - heapBefore;
  const root = loaded.rules.domains.get(domain);
  if (root === undefined) throw new Error('the domain is missing');
  const requests = Array.from({ length: requestCount }, (_, i) => request((i * 7919) % rules));
  measureMatch(root, requests);
  const matchNanos = measureMatch(root, requests);
  return { shape, rules, fileBytes: text.length, loadMs, heapBytes, peakRssBytes, matchNanos };
}

function measureMatch(root: RuleNode, requests: readonly (readonly Entry[])[]): number {
  const startedAt = performance.now();
  let found = 0;
  for (let i = 0; i < lookUps; i++) {
    const entries = requests[i % requests.length];
    if (entries !== undefined && matchEntries(root, entries) !== undefined) found++;
  }
  if (found !== lookUps) throw new Error('a request of the bench matches no rule');
  return ((performance.now() - startedAt) * 1e6) / lookUps;
}

/** Heap after a full garbage collection. */
function liveHeapBytes(): number {
  setFlagsFromString('--expose-gc');
  // The flag adds `gc` to contexts made after it; what comes out is V8's function.
  const collect = runInNewContext('gc') as () => void;
  collect();
  return process.memoryUsage().heapUsed;
}
