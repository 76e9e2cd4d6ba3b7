import { setTimeout as delay } from 'node:timers/promises';
import { readProcessUsage } from './process-usage.ts';
import { benchDomain, writeRules } from './rules-file.ts';
import type { RulesScenario } from './scenario.ts';
import { startTestBed } from './test-bed.ts';

/** What loading rules took. */
export interface RulesResult {
  scenario: RulesScenario;
  /** From the start of the process until it was healthy, rules loaded. */
  startMs: number;
  /** From the moment a changed rule file was in place until a decision followed it. */
  reloadMs: number;
  /** The longest that a decision took meanwhile: rules are read on the thread that decides. */
  longestPauseMs: number;
  /** Resident memory after the start, and after some reloads. */
  rssBytes: number;
  rssAfterReloadsBytes: number;
  peakRssBytes: number;
}

const reloads = 3;
const pollMs = 5;
const reloadTimeoutMs = 30_000;

/** Starts a service with a rule file of some size and changes the file while it runs. The times are medians. */
export async function measureRules(
  scenario: RulesScenario,
  nodeFlags: readonly string[],
): Promise<RulesResult> {
  const bed = await startTestBed({ backend: 'memory', rules: scenario.rules, nodeFlags });
  try {
    const { pid, httpPort, startMs } = bed.service;
    const { rssBytes } = readProcessUsage(pid);
    const changes: Change[] = [];
    for (let generation = 2; generation < 2 + reloads; generation++) {
      const text = writeRules(scenario.rules, generation);
      bed.replaceRules(text);
      changes.push(await watchChange(`http://127.0.0.1:${httpPort}/json`, generation));
    }
    const { rssBytes: rssAfterReloadsBytes, peakRssBytes } = readProcessUsage(pid);
    return {
      scenario,
      startMs,
      reloadMs: median(changes.map((change) => change.reloadMs)),
      longestPauseMs: median(changes.map((change) => change.longestPauseMs)),
      rssBytes,
      rssAfterReloadsBytes,
      peakRssBytes,
    };
  } finally {
    await bed.close();
  }
}

type Change = Pick<RulesResult, 'reloadMs' | 'longestPauseMs'>;

/** Asks for decisions one after the other until one follows the rules of `generation`. */
async function watchChange(url: string, generation: number): Promise<Change> {
  const startedAt = performance.now();
  let longestPauseMs = 0;
  for (;;) {
    const askedAt = performance.now();
    const inForce = await askGeneration(url);
    const now = performance.now();
    longestPauseMs = Math.max(longestPauseMs, now - askedAt);
    if (inForce === generation) return { reloadMs: now - startedAt, longestPauseMs };
    if (now - startedAt > reloadTimeoutMs) throw new Error('a changed rule file did not take effect');
    await delay(pollMs);
  }
}

async function askGeneration(url: string): Promise<number | undefined> {
  const answer = await fetch(url, {
    method: 'POST',
    body: JSON.stringify({
      domain: benchDomain,
      descriptors: [{ entries: [{ key: 'generation', value: 'any' }] }],
    }),
    signal: AbortSignal.timeout(reloadTimeoutMs),
  });
  // The service's own JSON form of RateLimitResponse; anything else answers undefined and runs into the timeout.
  const body = (await answer.json()) as { statuses?: { currentLimit?: { requestsPerUnit?: number } }[] };
  return body.statuses?.[0]?.currentLimit?.requestsPerUnit;
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1] ?? 0;
}
