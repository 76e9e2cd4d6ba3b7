import { createLogger } from '@tollgate/kit/logger';
import { awaitUntil } from '@tollgate/testkit/await-until';
import type { Test } from 'tap';
import { FileSource, type FileSourceOptions } from '../../src/rules/file-source.ts';
import type { RuleLoad, RuleSource } from '../../src/rules/rule-store.ts';

/** A rule file with one limit for each key. */
export function rulesText(domain: string, requestsPerUnit: number, keys: readonly string[] = ['k']): string {
  const descriptors = keys.map(
    (key) => `  - key: ${key}\n    rate_limit: { unit: hour, requests_per_unit: ${requestsPerUnit} }\n`,
  );
  return `domain: ${domain}\ndescriptors:\n${descriptors.join('')}`;
}

/** A source that was started, and what it has loaded. */
export interface FollowedRules {
  /** Every attempt, in order. */
  readonly loads: readonly RuleLoad[];
  /** Resolves when the last good load has this limit for the key `k` of a domain. */
  inForce(domain: string, requestsPerUnit: number | undefined): Promise<void>;
  /** Resolves with the messages of the `count`-th attempt, which must be a bad one. */
  problemsOf(count: number): Promise<readonly string[]>;
  close(): Promise<void>;
}

/** A source on a folder `config` that is watched in place, unless said otherwise. */
export function fileSource(root: string, options: Partial<FileSourceOptions> = {}): RuleSource {
  return new FileSource(
    {
      root,
      subdirectory: '',
      appDirectory: 'config',
      ignoreDotFiles: false,
      watchRoot: false,
      mergeDomains: false,
      forMemcached: false,
      ...options,
    },
    createLogger({ level: 'fatal', format: 'text' }),
  );
}

/** Starts a source on a folder; it is closed when the test ends. */
export async function followRules(
  t: Test,
  root: string,
  options: Partial<FileSourceOptions> = {},
): Promise<FollowedRules> {
  const loads: RuleLoad[] = [];
  const source = fileSource(root, options);
  t.teardown(() => source.close());
  await source.start((load) => loads.push(load));

  return {
    loads,
    close: () => source.close(),
    async inForce(domain, requestsPerUnit) {
      await awaitUntil(() => limitOf(loads, domain) === requestsPerUnit, {
        what: `limit ${requestsPerUnit} of ${domain}; last seen ${limitOf(loads, domain)}`,
      });
      t.equal(limitOf(loads, domain), requestsPerUnit, `limit of ${domain} in force`);
    },
    async problemsOf(count) {
      await awaitUntil(() => loads.length >= count, { what: `attempt ${count}` });
      const load = loads[count - 1];
      return load?.ok === false ? load.problems.map(textOf) : [];
    },
  };
}

function textOf({
  source,
  line,
  column,
  message,
}: {
  source: string;
  line?: number;
  column?: number;
  message: string;
}) {
  return line === undefined ? `${source}: ${message}` : `${source}:${line}:${column}: ${message}`;
}

/** The limit for the key `k` of a domain in the last good load; undefined when there is none. */
export function limitOf(loads: readonly RuleLoad[], domain: string): number | undefined {
  const last = loads.findLast((load) => load.ok);
  return last?.rules.domains.get(domain)?.children?.get('k')?.match?.rule.requestsPerUnit;
}
